//! Processes and threads, from all packets that describe them.

use std::collections::HashMap;

use crate::string_table::Symbol;
use crate::track_key::TrackKey;

/// A process.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) machine: u32,
    pub(crate) pid: i64,
    pub(crate) name: Option<Symbol>,
    pub(crate) cmdline: Vec<Symbol>,
    pub(crate) parent: Option<i64>,
    pub(crate) uid: Option<i32>,
    /// The uuid of the track that describes it.
    pub(crate) uuid: Option<u64>,
    pub(crate) start: StartTimes,
}

/// When a program connected and began to be recorded, in nanoseconds of `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StartTimes {
    pub(crate) connected: Option<u64>,
    /// When the program could begin to record.
    pub(crate) ready: Option<u64>,
    pub(crate) enabled: Option<u64>,
}

/// A thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) process: usize,
    pub(crate) tid: i64,
    pub(crate) name: Option<Symbol>,
    pub(crate) uuid: Option<u64>,
}

/// All processes and threads, without the idle process (pid 0).
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    by_pid: HashMap<(u32, i64), usize>,
    by_tid: HashMap<(u32, i64), usize>,
    processes_by_track: HashMap<TrackKey, usize>,
    threads_by_track: HashMap<TrackKey, usize>,
}

impl Processes {
    /// Returns the process with this pid. If it is not known, adds it with its main thread.
    ///
    /// If the known process has another track than `uuid`, the pid was given to a new process.
    pub(crate) fn process(&mut self, machine: u32, pid: i64, uuid: Option<u64>) -> usize {
        let track = uuid.map(|uuid| TrackKey { machine, uuid });
        let described = track.and_then(|track| self.processes_by_track.get(&track));
        if let Some(&index) = described.filter(|&&index| self.processes[index].pid == pid) {
            return index;
        }
        if let Some(&index) = self.by_pid.get(&(machine, pid)) {
            let process = &mut self.processes[index];
            if uuid.is_none() || process.uuid.is_none() || process.uuid == uuid {
                process.uuid = process.uuid.or(uuid);
                self.processes_by_track.extend(track.map(|track| (track, index)));
                return index;
            }
        }
        let index = self.processes.len();
        let start = StartTimes::default();
        let process = Process { machine, pid, name: None, cmdline: Vec::new(), parent: None, uid: None, uuid, start };
        self.processes.push(process);
        self.processes_by_track.extend(track.map(|track| (track, index)));
        self.by_pid.insert((machine, pid), index);
        self.by_tid.insert((machine, pid), self.threads.len());
        self.threads.push(Thread { process: index, tid: pid, name: None, uuid: None });
        index
    }

    /// Returns the thread with this tid in that process; compare [`process`](Self::process).
    pub(crate) fn thread(&mut self, machine: u32, pid: i64, tid: i64, uuid: Option<u64>) -> usize {
        let track = uuid.map(|uuid| TrackKey { machine, uuid });
        let described = track.and_then(|track| self.threads_by_track.get(&track));
        if let Some(&index) = described.filter(|&&index| self.threads[index].tid == tid) {
            return index;
        }
        let process = self.process(machine, pid, None);
        if let Some(&index) = self.by_tid.get(&(machine, tid)) {
            let thread = &mut self.threads[index];
            let same_track = uuid.is_none() || thread.uuid.is_none() || thread.uuid == uuid;
            if thread.process == process && same_track {
                thread.uuid = thread.uuid.or(uuid);
                self.threads_by_track.extend(track.map(|track| (track, index)));
                return index;
            }
        }
        let index = self.threads.len();
        self.threads.push(Thread { process, tid, name: None, uuid });
        self.threads_by_track.extend(track.map(|track| (track, index)));
        self.by_tid.insert((machine, tid), index);
        index
    }
}
