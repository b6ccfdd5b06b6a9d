//! Numbers of processes and threads in a file, where each must be unique.

use std::collections::HashSet;

use esatto_trace::tables::Tables;

/// The first number for processes and threads whose own one is taken.
const FIRST_FREE: u32 = 1 << 30;

/// Numbers of processes and threads.
#[derive(Debug)]
pub(super) struct Ids {
    pids: Vec<u32>,
    tids: Vec<u32>,
    /// Owner of tracks that belong to no process.
    pub(super) machine: u32,
    /// Owner of threads whose process is not known.
    pub(super) unknown: u32,
    /// Owner of the tracks of processors.
    pub(super) processors: u32,
}

impl Ids {
    pub(super) fn new(tables: &Tables) -> Self {
        let mut next = FIRST_FREE;
        let pids = unique(&tables.process.pid, &mut next);
        let tids = unique(&tables.thread.tid, &mut next);
        Self { pids, tids, machine: next, unknown: next + 1, processors: next + 2 }
    }

    /// Returns the number of the process in a row.
    pub(super) fn pid(&self, process: usize) -> u32 {
        self.pids[process]
    }

    /// Returns the numbers of the thread in a row and of its process.
    pub(super) fn thread(&self, tables: &Tables, thread: usize) -> (u32, u32) {
        let pid = tables.thread.upid[thread].map_or(self.unknown, |process| self.pid(process.index()));
        (pid, self.tids[thread])
    }
}

/// Returns the numbers, with others in the place of those that are there twice or are too large.
fn unique(numbers: &[i64], next: &mut u32) -> Vec<u32> {
    let mut taken = HashSet::new();
    let own: Vec<Option<u32>> = numbers
        .iter()
        .map(|&number| u32::try_from(number).ok().filter(|&number| number < FIRST_FREE && taken.insert(number)))
        .collect();
    let mut free = || {
        *next += 1;
        *next - 1
    };
    own.into_iter().map(|own| own.unwrap_or_else(&mut free)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_replaced() {
        let mut next = FIRST_FREE;
        assert_eq!(unique(&[7, 0, 7, -1, 1 << 40], &mut next), [7, 0, FIRST_FREE, FIRST_FREE + 1, FIRST_FREE + 2]);
        assert_eq!(unique(&[7], &mut next), [7]);
    }
}
