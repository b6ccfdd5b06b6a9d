//! [`Counters`]: what the polls read of each process.

use std::collections::HashMap;
use std::os::fd::AsFd;

use esatto_schema::ProcessStatsWriter;

use super::MAX_STATUS_BYTES;
use super::descriptors::{Descriptors, MAX_TARGET_BYTES};
use super::kept_file::KeptFile;
use super::memory_watch::{MemoryWatch, Watched};
use super::number::{signed, unsigned};
use super::options::Options;
use super::slice::Slice;
use super::stat::Times;
use super::status::{parse_memory, parse_smaps_rollup};
use super::values::{Slot, Values, Written};
use crate::proc_folder::{FileBuffer, Numbers, ProcFolder};

/// Reads the counters of processes, and writes those that changed.
pub(crate) struct Counters {
    options: Options,
    ns_per_tick: u64,
    known: HashMap<i32, Known>,
    /// Number of the poll.
    round: u32,
    /// Polls of the current cache period.
    polls_in_period: u32,
    /// Number of the cache period. Values of earlier ones are not trusted.
    period: u32,
    status: FileBuffer,
    small: FileBuffer,
    rollup: FileBuffer,
    target: [u8; MAX_TARGET_BYTES],
    /// Descriptors of the process that was read last.
    descriptors: Vec<u32>,
}

/// A process that polls have met.
#[derive(Debug, Default)]
struct Known {
    files: Files,
    /// It is a thread of the kernel, or has ended and waits for its parent.
    has_no_memory: bool,
    watch: MemoryWatch,
    /// A hash of the name at the last poll; 0 if it is not known.
    name: u32,
    /// The values that were read last.
    values: Values,
    written: Written,
    descriptors: Descriptors,
    period: u32,
    round: u32,
}

/// Files that are kept open, because every poll reads them.
#[derive(Debug, Default)]
struct Files {
    status: Option<KeptFile>,
    oom_score_adj: Option<KeptFile>,
    stat: Option<KeptFile>,
}

/// Counters of all processes, read in slices.
pub(crate) struct Poll {
    processes: Numbers,
    only_descriptors: bool,
}

/// Counters of a process to be written. Its descriptors are in the [`Counters`] until the next one
/// is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pid: i32,
    values: Values,
}

/// Processes that a slice of a poll met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// Processes whose counters could be read.
    pub(crate) pids: Vec<i32>,
    /// Ids that belong to another process than at the last poll, or to one with another name.
    pub(crate) reused: Vec<i32>,
}

/// Longest `oom_score_adj` or `dmabuf_rss`.
const MAX_NUMBER_BYTES: usize = 2048;
/// Longest `smaps_rollup`: three times what kernels write.
const MAX_ROLLUP_BYTES: usize = 4096;
/// Reads that one of `smaps_rollup` counts as: the kernel visits all pages of the process.
const ROLLUP_COST: u32 = 16;

impl Counters {
    pub(crate) fn new(options: Options, ns_per_tick: u64) -> Self {
        Self {
            options,
            ns_per_tick,
            known: HashMap::new(),
            round: 0,
            polls_in_period: 0,
            period: 1,
            status: FileBuffer::new(MAX_STATUS_BYTES),
            small: FileBuffer::new(MAX_NUMBER_BYTES),
            rollup: FileBuffer::new(MAX_ROLLUP_BYTES),
            target: [0; MAX_TARGET_BYTES],
            descriptors: Vec::new(),
        }
    }

    /// Begins a poll. Returns `None` if the folder cannot be read.
    pub(crate) fn begin_poll(&mut self, proc: &ProcFolder) -> Option<Poll> {
        self.round = self.round.wrapping_add(1);
        Some(Poll { processes: proc.processes()?, only_descriptors: false })
    }

    /// Begins to read the open descriptors of all processes.
    pub(crate) fn begin_descriptors(&mut self, proc: &ProcFolder) -> Option<Poll> {
        let poll = self.begin_poll(proc)?;
        Some(Poll { only_descriptors: true, ..poll })
    }

    /// Ends a poll that read all processes.
    pub(crate) fn end_poll(&mut self, poll: &Poll) {
        let round = self.round;
        self.known.retain(|_, known| known.round == round);
        if poll.only_descriptors {
            return;
        }
        self.polls_in_period += 1;
        if self.polls_in_period >= self.options.polls_per_cache_period {
            self.polls_in_period = 0;
            self.period = self.period.wrapping_add(1);
        }
    }

    /// Forgets processes whose ids may belong to others now.
    pub(crate) fn forget_range(&mut self, first: i32, last: i32) {
        self.known.retain(|pid, _| !(first..=last).contains(pid));
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.polls_in_period = 0;
    }

    /// Writes what was read last.
    pub(crate) fn write(&mut self, changed: &Changed, proc: &ProcFolder, stats: &mut ProcessStatsWriter<'_>) {
        let mut process = stats.processes();
        process.pid(changed.pid);
        changed.values.write(&mut process);
        for &descriptor in &self.descriptors {
            if let Some(target) = proc.descriptor_target(changed.pid, descriptor, &mut self.target) {
                process.fds().fd(descriptor.into()).path(target);
            }
        }
    }

    /// Reads a process. Returns what changed since the last write.
    fn read(&mut self, pid: i32, proc: &ProcFolder, slice: &mut Slice, met: &mut Met, poll: &Poll) -> Option<Changed> {
        self.descriptors.clear();
        let known = self.known.entry(pid).or_default();
        known.round = self.round;
        if known.period != self.period {
            known.period = self.period;
            known.written = Written::default();
            known.descriptors.clear();
        }
        let mut values = Values::default();
        let mut is_met = false;
        if !poll.only_descriptors {
            let mut read = Reading {
                options: &self.options,
                ns_per_tick: self.ns_per_tick,
                proc,
                pid,
                status: &mut self.status,
                small: &mut self.small,
                rollup: &mut self.rollup,
                slice,
                values: &mut values,
            };
            let name = known.name;
            match read.all(known) {
                ReadResult::Read => {
                    is_met = true;
                    if name != 0 && name != known.name {
                        met.reused.push(pid);
                    }
                }
                ReadResult::Absent => {}
                ReadResult::OtherProcess => {
                    met.reused.push(pid);
                    *known = Known { period: self.period, round: self.round, ..Known::default() };
                    is_met = read.all(known) == ReadResult::Read;
                }
            }
        }
        if self.options.descriptors && !known.has_no_memory {
            known.descriptors.find_new(proc, pid, slice, &mut self.descriptors);
        }
        if is_met {
            met.pids.push(pid);
        }
        let values = known.values.update(&values, &mut known.written);
        (!values.is_empty() || !self.descriptors.is_empty()).then_some(Changed { pid, values })
    }
}

impl Poll {
    /// Reads on until there is something to write. Returns `None` at the end of the slice or of the
    /// poll.
    pub(crate) fn find_next(
        &mut self,
        proc: &ProcFolder,
        counters: &mut Counters,
        slice: &mut Slice,
        met: &mut Met,
    ) -> Option<Changed> {
        while !slice.is_over() {
            let Some(id) = self.processes.next() else {
                slice.finish_scan();
                return None;
            };
            let Ok(pid) = i32::try_from(id) else { continue };
            if let Some(changed) = counters.read(pid, proc, slice, met, self) {
                return Some(changed);
            }
        }
        None
    }
}

impl Known {
    /// Notes that the process has no memory, and closes the files that tell of it.
    fn forget_memory(&mut self) {
        self.has_no_memory = true;
        self.files.status = None;
        self.files.oom_score_adj = None;
        self.watch = MemoryWatch::default();
    }
}

/// Files of one process being read.
struct Reading<'a> {
    options: &'a Options,
    ns_per_tick: u64,
    proc: &'a ProcFolder,
    pid: i32,
    status: &'a mut FileBuffer,
    small: &'a mut FileBuffer,
    rollup: &'a mut FileBuffer,
    slice: &'a mut Slice,
    values: &'a mut Values,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadResult {
    /// At least one counter group could be read.
    Read,
    /// The process ended, is hidden from us, or has none of the counters that are wanted.
    Absent,
    /// The process ended, and its id may belong to another one.
    OtherProcess,
}

impl Reading<'_> {
    fn all(&mut self, known: &mut Known) -> ReadResult {
        let mut watched = Watched::Changed;
        if !known.has_no_memory {
            watched = known.watch.check(self.proc, self.pid, self.slice, self.small);
        }
        let mut result = ReadResult::Absent;
        if self.options.runtime && watched != Watched::Ended {
            match self.runtime(known, watched) {
                ReadResult::OtherProcess => return ReadResult::OtherProcess,
                read => result = read,
            }
        }
        if known.has_no_memory {
            return result;
        }
        match watched {
            Watched::Ended => return ReadResult::OtherProcess,
            Watched::Unchanged => {
                known.files.status = None;
                self.values.copy(&Slot::MEMORY, &known.values);
            }
            Watched::Changed => {
                self.slice.spend(1);
                match read_kept(&mut known.files.status, self.proc, self.pid, b"status", self.status) {
                    KeptRead::Ended => return ReadResult::OtherProcess,
                    KeptRead::Absent => return result,
                    KeptRead::Text => {}
                }
                let Some(threads) = parse_memory(self.status.bytes(), self.values) else {
                    known.forget_memory();
                    return result;
                };
                known.watch.note_threads(threads);
                known.name = name_hash(self.status.bytes());
            }
        }
        if self.options.dmabuf_rss {
            self.slice.spend(1);
            if let Some(text) = self.proc.read(self.pid, b"dmabuf_rss", self.small) {
                self.values.set(Slot::DmabufRss, unsigned(text).map_or(0, |(bytes, _)| bytes / 1024));
            }
        }
        if self.options.smaps_rollup {
            self.slice.spend(ROLLUP_COST);
            if let Some(text) = self.proc.read(self.pid, b"smaps_rollup", self.rollup) {
                parse_smaps_rollup(text, self.values);
            }
        }
        self.slice.spend(1);
        let adjustment = read_kept(&mut known.files.oom_score_adj, self.proc, self.pid, b"oom_score_adj", self.small);
        if let (KeptRead::Text, Some((value, _))) = (adjustment, signed(self.small.bytes())) {
            self.values.set(Slot::OomScoreAdj, value as u64);
        }
        ReadResult::Read
    }

    /// Reads the times that the process ran. If it did not run since the last poll, they are those
    /// of then.
    fn runtime(&mut self, known: &mut Known, watched: Watched) -> ReadResult {
        if watched == Watched::Unchanged && known.values.get(Slot::RuntimeUser).is_some() {
            known.files.stat = None;
            self.values.copy(&Slot::RUNTIME, &known.values);
            return ReadResult::Read;
        }
        self.slice.spend(1);
        match read_kept(&mut known.files.stat, self.proc, self.pid, b"stat", self.small) {
            KeptRead::Ended => return ReadResult::OtherProcess,
            KeptRead::Absent => return ReadResult::Absent,
            KeptRead::Text => {}
        }
        let Some(times) = Times::parse(self.small.bytes()) else { return ReadResult::Absent };
        self.values.set(Slot::RuntimeUser, times.user.saturating_mul(self.ns_per_tick));
        self.values.set(Slot::RuntimeKernel, times.kernel.saturating_mul(self.ns_per_tick));
        ReadResult::Read
    }
}

/// Returns a hash of the first line of `status`, which has the name.
fn name_hash(status: &[u8]) -> u32 {
    let line = status.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let add = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    line.iter().fold(0x811c_9dc5, add).max(1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptRead {
    /// The text is in the buffer.
    Text,
    Absent,
    /// The process of the file that was kept has ended.
    Ended,
}

/// Reads a file that is kept open, or opens and keeps it.
fn read_kept(
    kept: &mut Option<KeptFile>,
    proc: &ProcFolder,
    pid: i32,
    name: &[u8],
    buffer: &mut FileBuffer,
) -> KeptRead {
    if let Some(file) = kept {
        return if buffer.read(file.as_fd()).is_some() { KeptRead::Text } else { KeptRead::Ended };
    }
    let Some(file) = proc.open_file(pid, name) else { return KeptRead::Absent };
    if buffer.read(&file).is_none() {
        return KeptRead::Absent;
    }
    *kept = KeptFile::keep(file);
    KeptRead::Text
}
