//! State of the import of kernel events at its current time.

use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::{HashMap, HashSet};

/// Moments from which on kernel events count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FtraceWindow {
    /// Events before this moment are not imported.
    pub(super) begin: i64,
    /// Events before this moment are rows only: some processors have no events of that time, so
    /// that an interval could seem to have no end.
    pub(super) complete: i64,
}

/// Facts about a file from which the moments follow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FtraceBounds {
    /// When the recording started.
    pub(super) started: Option<i64>,
    /// When all processors have events.
    pub(super) complete: Option<i64>,
    /// Events from before the recording are wanted.
    pub(super) keeps_old: bool,
}

impl FtraceBounds {
    pub(super) fn window(self) -> FtraceWindow {
        let begin = self.started.filter(|_| !self.keeps_old).unwrap_or(0);
        FtraceWindow { begin, complete: self.complete.unwrap_or(0).max(begin) }
    }
}

/// A counter of a process that is known by one of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ThreadCounter {
    /// A kind of memory.
    Memory(&'static str),
    /// A kind of memory events, and what is counted of them.
    MmEvent(&'static str, &'static str),
    OomScoreAdj,
}

/// Counters of processes of which a thread is known. Its process may only be known later.
#[derive(Debug, Default)]
pub(crate) struct ThreadCounters {
    /// By file and thread.
    pub(super) keys: Vec<(usize, Row, ThreadCounter)>,
    pub(super) index: HashMap<(usize, Row, ThreadCounter), u32>,
    /// Values, with their counters.
    pub(super) values: Vec<(Row, u32)>,
    /// Threads by the number of their memory.
    pub(super) memories: HashMap<(u32, u64), Row>,
}

/// State of slices that more than two events make.
#[derive(Debug, Default)]
pub(crate) struct KernelSlices {
    /// Tracks of processors, by kind, machine and processor.
    pub(super) cpu_tracks: HashMap<(&'static str, u32, u32), Row>,
    /// Transfers of threads on I2C buses: the bus, and the number of messages so far.
    pub(super) i2c: HashMap<Row, (u32, u32)>,
    /// Pages that the allocations of threads migrated, reclaimed and mapped.
    pub(super) migrations: HashMap<Row, [u64; 3]>,
}

/// Step of the way to the sleep of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspend {
    Entered(Symbol),
    Frozen(Symbol),
}

/// State of slices about sleep.
#[derive(Debug, Default)]
pub(crate) struct Power {
    /// The way of each machine to its sleep.
    pub(super) suspends: HashMap<u32, Suspend>,
    /// How often each name keeps a machine awake.
    pub(super) awake: HashMap<(u32, String), u64>,
    /// Tracks of devices that are not suspended.
    pub(super) devices: HashSet<Row>,
}

/// Sums and numbers of network events.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// Bytes of each interface, by machine; true for those that it received.
    pub(super) bytes: HashMap<(u32, String, bool), u64>,
    /// Numbers of the streams of TCP, from 1, by machine and address of the socket.
    pub(super) streams: HashMap<(u32, u64), u32>,
    /// Number of streams of each machine.
    pub(super) stream_counts: HashMap<u32, u32>,
    /// Packets of the internet protocol that each machine dropped.
    pub(super) freed: HashMap<u32, u64>,
}

/// Threads that write into a file at the moment.
#[derive(Debug, Default)]
pub(crate) struct Writers(pub(super) HashSet<Row>);
