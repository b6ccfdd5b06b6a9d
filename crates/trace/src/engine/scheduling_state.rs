//! The thread that each processor runs, and the state of each thread, at the current time of the
//! import.

use super::scheduling_gaps::SchedulingGaps;
use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

/// The current states of processors and threads.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    pub(super) cpus: HashMap<(u32, u32), Cpu>,
    /// Last states, by file and thread.
    threads: Vec<Vec<Option<LastState>>>,
    /// The file whose events are imported.
    pub(crate) file: usize,
    /// Letters of states, by machine.
    pub(super) states: HashMap<(u32, u16), Option<Symbol>>,
    pub(super) running: Option<Symbol>,
    pub(super) runnable: Option<Symbol>,
    /// Rows of the processors, by machine.
    pub(super) listed: HashMap<(u32, u32), Row>,
    pub(crate) gaps: SchedulingGaps,
}

/// The last state of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastState {
    pub(super) row: Row,
    /// The last state in which it was blocked.
    pub(super) blocked: Option<Row>,
}

impl Scheduling {
    /// Returns the last state of a thread.
    pub(super) fn last(&self, utid: Row) -> Option<LastState> {
        self.threads.get(self.file)?.get(utid.index()).copied().flatten()
    }

    pub(super) fn set_last(&mut self, utid: Row, last: LastState) {
        if self.threads.len() <= self.file {
            self.threads.resize(self.file + 1, Vec::new());
        }
        let threads = &mut self.threads[self.file];
        if threads.len() <= utid.index() {
            threads.resize(utid.index() + 1, None);
        }
        threads[utid.index()] = Some(last);
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    /// The interval that has not ended; none after the first event of the compact form.
    pub(super) open: Option<Row>,
    pub(super) pid: i64,
    pub(super) utid: Row,
    pub(super) prio: i64,
}
