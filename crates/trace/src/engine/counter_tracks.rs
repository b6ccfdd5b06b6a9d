//! State of the import of statistics.

use crate::tables::Row;
use hashbrown::HashMap;

/// The last values of counters of which only the growth is a value, and tracks by their key.
#[derive(Debug, Default)]
pub(crate) struct CounterTracks {
    /// Tracks of counters of processes by their field, with the factor of the values.
    pub(super) of_process: HashMap<(Row, u32), (Row, f64)>,
    /// Statistics of each device at its last packet.
    pub(super) disks: HashMap<(u32, String), [u64; 8]>,
}
