//! State of the import of call stacks and heap profiles.

use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

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
    pub(super) same_frames: HashMap<(Symbol, Row, i64), Row>,
    pub(super) same_callsites: HashMap<(Option<Row>, Row), Row>,
    /// Time of the last sample of each sequence.
    pub(super) sample_times: HashMap<usize, i64>,
}

/// Counts and bytes that heap profiles have told so far, by process, heap and call stack.
#[derive(Debug, Default)]
pub(crate) struct Heaps(pub(super) HashMap<(Row, Option<Symbol>, Row), [i64; 4]>);
