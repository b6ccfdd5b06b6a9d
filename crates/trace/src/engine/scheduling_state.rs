//! The thread that each processor runs, and the state of each thread, at the current time of the
//! import.

use super::scheduling_gaps::SchedulingGaps;
use crate::machines::HOST;
use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

/// The current states of processors and threads.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    pub(super) cpus: Cpus,
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
    /// The last ones that were looked up, by the lower bits of their numbers: file, machine,
    /// processor and row.
    recent: [Option<(usize, u32, u32, Row)>; RECENT],
    pub(crate) gaps: SchedulingGaps,
}

const RECENT: usize = 16;

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

    /// Returns the row of a processor, if it was looked up a moment ago.
    pub(super) fn recently_listed(&self, machine: u32, cpu: u32) -> Option<Row> {
        let (file, of_machine, number, row) = self.recent[cpu as usize % RECENT]?;
        ((file, of_machine, number) == (self.file, machine, cpu)).then_some(row)
    }

    pub(super) fn note_listed(&mut self, machine: u32, cpu: u32, row: Row) {
        self.recent[cpu as usize % RECENT] = Some((self.file, machine, cpu, row));
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

/// Processors of the host whose numbers are below this are found without a hash.
const NEAR_CPUS: u32 = 1024;

/// The state of each processor.
#[derive(Debug, Default)]
pub(super) struct Cpus {
    near: Vec<Option<Cpu>>,
    others: HashMap<(u32, u32), Cpu>,
}

impl Cpus {
    pub(super) fn get(&self, machine: u32, cpu: u32) -> Option<&Cpu> {
        match is_near(machine, cpu) {
            true => self.near.get(cpu as usize)?.as_ref(),
            false => self.others.get(&(machine, cpu)),
        }
    }

    pub(super) fn set(&mut self, machine: u32, cpu: u32, state: Cpu) {
        if !is_near(machine, cpu) {
            self.others.insert((machine, cpu), state);
            return;
        }
        let index = cpu as usize;
        if self.near.len() <= index {
            self.near.resize(index + 1, None);
        }
        self.near[index] = Some(state);
    }
}

fn is_near(machine: u32, cpu: u32) -> bool {
    machine == HOST && cpu < NEAR_CPUS
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    /// The interval that has not ended; none after the first event of the compact form.
    pub(super) open: Option<Row>,
    pub(super) pid: i64,
    pub(super) utid: Row,
    pub(super) prio: i64,
}
