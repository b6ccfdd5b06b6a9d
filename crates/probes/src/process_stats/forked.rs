//! [`Forked`]: processes that were described between their fork and the program that they execute.
//!
//! Until then, a process has the name and the command line of its parent. The kernel tells that it
//! has not executed a program yet. Workers of a server never do, so the looks end after a while.

use core::time::Duration;

use super::boot_time_ns;
use super::stat::Origin;
use crate::data_source::Monotonic;
use crate::proc_folder::{FileBuffer, ProcFolder};

/// Time between the description of a process and the first look at it. Each further look comes
/// after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// Age from which a process is not looked at any more.
const MAX_AGE_NS: u64 = 2_000_000_000;
/// Processes that are looked at. Others keep what they were when they were found.
const MAX_FORKED: usize = 1024;
/// Ids before the last one at the start whose processes may have been forked just then.
const IDS_BEFORE_START: i32 = 16;

#[derive(Debug)]
struct ForkedProcess {
    pid: i32,
    /// `None` until the next turn of the worker.
    due: Option<Monotonic>,
    wait: Duration,
}

/// Processes to be looked at again.
#[derive(Debug)]
pub(super) struct Forked {
    processes: Vec<ForkedProcess>,
    /// Processes with smaller ids have begun long before, unless the ids begin again.
    first_id: i32,
    ns_per_tick: u64,
}

impl Forked {
    /// `last_id` is the last id that the kernel gave, if that is known.
    pub(super) fn new(last_id: Option<i32>, ns_per_tick: u64) -> Self {
        let first_id = last_id.map_or(i32::MAX, |last| last.saturating_sub(IDS_BEFORE_START));
        Self { processes: Vec::new(), first_id, ns_per_tick }
    }

    /// Notes that the ids began again.
    pub(super) fn note_wrapped_ids(&mut self) {
        self.first_id = 0;
    }

    /// Returns whether the id of a process may be that of a new one.
    pub(super) fn may_be_new(&self, pid: i32) -> bool {
        pid >= self.first_id
    }

    /// Returns whether a process is young and has not executed a program.
    pub(super) fn is_forked(&self, origin: &Origin<'_>) -> bool {
        !origin.has_executed && self.is_young(origin)
    }

    /// Returns whether a process has begun a short time ago.
    pub(super) fn is_young(&self, origin: &Origin<'_>) -> bool {
        boot_time_ns().saturating_sub(origin.start.saturating_mul(self.ns_per_tick)) < MAX_AGE_NS
    }

    /// Lets a process be looked at again.
    pub(super) fn add(&mut self, pid: i32) {
        let is_known = self.processes.iter().any(|process| process.pid == pid);
        if !is_known && self.processes.len() < MAX_FORKED {
            self.processes.push(ForkedProcess { pid, due: None, wait: FIRST_LOOK });
        }
    }

    /// Returns when the next look is due.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.processes.iter().map(|process| process.due.unwrap_or(Monotonic::ZERO)).min()
    }

    /// Sets the times of the looks at processes that are new here.
    pub(super) fn set_due(&mut self, now: Monotonic) {
        for process in &mut self.processes {
            process.due.get_or_insert_with(|| now.saturating_add(process.wait));
        }
    }

    /// Takes the processes that have executed a program since they were described. Without a time,
    /// all are looked at.
    pub(super) fn take_executed(
        &mut self,
        now: Option<Monotonic>,
        proc: &ProcFolder,
        stat: &mut FileBuffer,
    ) -> Vec<i32> {
        let mut executed = Vec::new();
        let (first_due, mut processes) = (now, core::mem::take(&mut self.processes));
        processes.retain_mut(|process| {
            if first_due.is_some_and(|now| process.due.is_none_or(|due| due > now)) {
                return true;
            }
            let Some(origin) = proc.read(process.pid, b"stat", stat).and_then(Origin::parse) else { return false };
            if origin.has_executed {
                executed.push(process.pid);
                return false;
            }
            process.wait *= 2;
            process.due = now.map(|now| now.saturating_add(process.wait)).or(process.due);
            self.is_young(&origin)
        });
        self.processes = processes;
        executed
    }

    pub(super) fn clear(&mut self) {
        self.processes.clear();
    }
}
