//! State of the import of call stacks, samples and heap profiles.

use hashbrown::HashMap;

use crate::string_table::Symbol;
use crate::tables::Row;

/// Entries of interned data, by field and number.
pub(super) type InlineEntries = HashMap<(u32, u64), Box<[u8]>>;

/// Call stacks that are in the tables.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Rows by generation, process and interning number.
    pub(super) mappings: HashMap<(usize, Option<i64>, u64), Row>,
    pub(super) frames: HashMap<(usize, Option<i64>, u64), Row>,
    pub(super) callsites: HashMap<(usize, Option<i64>, u64), Row>,
    /// Rows that belong to one process, or that were looked up for one.
    pub(super) rows_of_processes: usize,
    /// Rows by content.
    pub(super) same_mappings: HashMap<([i64; 5], Symbol, Symbol), Row>,
    pub(super) same_frames: HashMap<(Option<Symbol>, Row, i64), Row>,
    pub(super) same_callsites: HashMap<(Option<Row>, Row), Row>,
    /// Interned data inside the heap profiles of a sequence, as older programs wrote it.
    pub(super) inline: HashMap<usize, InlineEntries>,
    /// Number of profiles that had such data.
    pub(super) inline_profiles: usize,
    /// Symbols of files, encoded.
    pub(super) symbols: Vec<Box<[u8]>>,
    /// Time of the last sample of each sequence.
    pub(super) sample_times: HashMap<usize, i64>,
}

/// Instances of the data source, and the counters of their processors.
#[derive(Debug, Default)]
pub(crate) struct PerfSessions {
    /// Numbers of instances, by sequence.
    pub(super) sessions: HashMap<usize, u32>,
    /// Names of the counters, the one by which samples are taken first.
    pub(super) counters: HashMap<(usize, u32), Vec<Symbol>>,
}

/// Counts and bytes that heap profiles have told so far, by process, heap and call stack.
#[derive(Debug, Default)]
pub(crate) struct Heaps(pub(super) HashMap<(Row, Option<Symbol>, Row), [i64; 4]>);
