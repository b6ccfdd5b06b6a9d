//! State of the import of call stacks and heap profiles.

use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

/// Call stacks that are in the tables.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Rows by generation and interning number.
    pub(super) mappings: HashMap<(usize, u64), Row>,
    pub(super) frames: HashMap<(usize, u64), Row>,
    pub(super) callsites: HashMap<(usize, u64), Row>,
    /// Rows by content.
    pub(super) same_mappings: HashMap<(usize, [i64; 5], Symbol, Symbol), Row>,
    pub(super) same_frames: HashMap<(Symbol, Row, i64), Row>,
    pub(super) same_callsites: HashMap<(Option<Row>, Row), Row>,
    /// Time of the last sample of each sequence.
    pub(super) sample_times: HashMap<usize, i64>,
}

/// Counts and bytes that heap profiles have told so far, by process, heap and call stack.
#[derive(Debug, Default)]
pub(crate) struct Heaps(pub(super) HashMap<(Row, Option<Symbol>, Row), [i64; 4]>);
