//! [`ProcessStats`]: the data source `linux.process_stats` (`docs/spec/probes.md` §13).
//!
//! It describes processes and threads (`process_tree`), and polls their counters (`process_stats`).
//! [`ProcessTree`] and [`Counters`] read files of `/proc` and say what is to be written; this module
//! decides when, and makes the packets. Parsers of the files are functions of their bytes.
//!
//! A scan of all processes is cut into slices, one per turn of the worker, each with a packet of
//! its own.

mod cmdline;
mod counters;
mod descriptors;
mod forked;
mod kept_file;
mod memory_watch;
mod number;
mod options;
mod pid_cursor;
mod process_tree;
mod seen_threads;
mod slice;
mod stat;
mod status;
mod values;

#[cfg(test)]
pub(crate) mod fake_proc;
#[cfg(test)]
mod tests;

pub(crate) use self::status::Status;

use core::time::Duration;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use esatto::producer::{Packet, TraceWriter};
use esatto_schema::{DataSourceDescriptor, ProcessStatsConfigReader, TracePacketWriter};
use rustix::time::{ClockId, clock_gettime};

use self::counters::{Counters, Met, Poll};
use self::options::Options;
use self::pid_cursor::PidCursor;
use self::process_tree::{Found, FullScan, ProcessTree};
use self::slice::Slice;
use crate::data_source::{Instance, Monotonic, Observed, SetupError};
use crate::instances::Source;
use crate::metatrace;
use crate::proc_folder::ProcFolder;
use crate::ticks::Ticks;

/// An instance of `linux.process_stats`.
pub(crate) struct ProcessStats {
    options: Options,
    proc: ProcFolder,
    tree: ProcessTree,
    counters: Counters,
    cursor: PidCursor,
    ticks: Option<Ticks>,
    scan: Option<FullScan>,
    poll: Option<Poll>,
    /// Threads that events of the kernel named, to be read.
    asked: VecDeque<i32>,
    met: Met,
    /// The next packet says that earlier ones are not needed.
    was_cleared: bool,
}

/// Longest `status`. The largest part are up to 65536 groups.
const MAX_STATUS_BYTES: usize = 1 << 20;

/// Longest `stat`: 52 numbers.
const MAX_STAT_BYTES: usize = 2048;

/// Threads that wait to be read. Others wait for their next event.
const MAX_ASKED: usize = 64 * 1024;

/// Time for which a flush goes on with a scan that has begun.
const MAX_FLUSH_MS: u64 = 500;

impl Source for ProcessStats {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.process_stats".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            handles_incremental_state_clear: Some(true),
            ..Default::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let config = instance.config().process_stats_config();
        Self::new(Path::new("/proc"), &config.unwrap_or_default())
    }

    fn start(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        self.ticks = self.options.poll_period.map(|period| Ticks::starting(now, period));
        if self.options.scan_all_on_start {
            self.scan = FullScan::begin(&self.proc);
            self.work(writer);
        }
    }

    fn flush(&mut self, writer: &mut TraceWriter) {
        let begin = Instant::now();
        while self.has_work() && begin.elapsed() < Duration::from_millis(MAX_FLUSH_MS) {
            self.work(writer);
        }
        self.write_executed(None, writer);
    }

    fn stop(&mut self, writer: &mut TraceWriter) {
        self.flush(writer);
    }

    fn clear_incremental_state(&mut self) {
        self.tree.seen.clear();
        self.tree.forked.clear();
        self.counters.clear();
        self.was_cleared = true;
    }

    fn deadline(&self) -> Option<Monotonic> {
        if self.has_work() {
            return Some(Monotonic::ZERO);
        }
        let poll = self.ticks.map(|ticks| ticks.deadline());
        poll.into_iter().chain(self.tree.forked.deadline()).min()
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        self.tree.forked.set_due(now);
        if self.tree.forked.deadline().is_some_and(|due| due <= now) {
            self.write_executed(Some(now), writer);
        }
        let is_scanning = self.scan.is_some() || self.poll.is_some();
        // A poll that lasts longer than the period takes the place of the next one.
        if self.ticks.as_mut().is_some_and(|ticks| !is_scanning && ticks.take(now)) {
            self.forget_reused();
            self.poll = self.counters.begin_poll(&self.proc);
        }
        self.work(writer);
    }

    fn observe(&mut self, observed: &Observed, writer: &mut TraceWriter) {
        if !self.options.on_demand {
            return;
        }
        self.forget_reused();
        for &id in &observed.renamed {
            self.tree.seen.remove(id);
        }
        for &id in &observed.tids {
            if self.asked.len() < MAX_ASKED && id > 0 && !self.tree.seen.contains(id) {
                self.asked.push_back(id);
            }
        }
        self.write_asked(writer);
    }
}

impl ProcessStats {
    /// Makes an instance that reads the `/proc` at `root`.
    fn new(root: &Path, config: &ProcessStatsConfigReader<'_>) -> Result<Self, SetupError> {
        let proc = ProcFolder::open(root).map_err(|error| {
            SetupError(format!("cannot open {}: {error}; processes are not recorded", root.display()))
        })?;
        let mut options = Options::new(config);
        // Few kernels have it. Do not look for it once per process.
        options.dmabuf_rss &= proc.open_path(b"self/dmabuf_rss").is_some();
        let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let cursor = PidCursor::new(&proc);
        Ok(Self {
            options,
            tree: ProcessTree::new(options, ns_per_tick, cursor.last()),
            counters: Counters::new(options, ns_per_tick),
            cursor,
            proc,
            ticks: None,
            scan: None,
            poll: None,
            asked: VecDeque::new(),
            met: Met::default(),
            was_cleared: true,
        })
    }

    fn has_work(&self) -> bool {
        self.scan.is_some() || self.poll.is_some() || !self.asked.is_empty()
    }

    /// Does one slice of what has begun.
    fn work(&mut self, writer: &mut TraceWriter) {
        if !self.asked.is_empty() {
            self.write_asked(writer);
        } else if self.scan.is_some() {
            self.write_scan(writer);
        } else if self.poll.is_some() {
            self.write_poll(writer);
        }
    }

    /// Forgets processes and threads whose ids the kernel may have given to others.
    fn forget_reused(&mut self) {
        for (first, last) in self.cursor.advance().into_iter().flatten() {
            if last == i32::MAX {
                self.tree.forked.note_wrapped_ids();
            }
            self.tree.seen.remove_range(first, last);
            self.counters.forget_range(first, last);
        }
    }

    fn write_asked(&mut self, writer: &mut TraceWriter) {
        if self.asked.is_empty() {
            return;
        }
        let _reading = metatrace::scope("process_stats on demand");
        let Self { asked, tree, proc, was_cleared, .. } = self;
        let mut slice = Slice::new();
        write_tree(tree, writer, was_cleared, |tree| {
            while !slice.is_over() {
                let found = tree.find(proc, asked.pop_front()?, &mut slice);
                if found.is_some() {
                    return found;
                }
            }
            None
        });
    }

    /// Describes processes again that have executed a program since they were described.
    fn write_executed(&mut self, now: Option<Monotonic>, writer: &mut TraceWriter) {
        let Self { tree, proc, was_cleared, .. } = self;
        let mut pids = tree.forget_executed(now, proc).into_iter();
        let mut slice = Slice::new();
        write_tree(tree, writer, was_cleared, |tree| pids.find_map(|pid| tree.find(proc, pid, &mut slice)));
    }

    fn write_scan(&mut self, writer: &mut TraceWriter) {
        let _reading = metatrace::scope("process_stats scan");
        let Self { scan, tree, proc, was_cleared, .. } = self;
        let Some(scan) = scan else { return };
        let mut slice = Slice::new();
        write_tree(tree, writer, was_cleared, |tree| scan.find_next(proc, tree, &mut slice));
        if slice.scan_is_done() {
            self.scan = None;
            // The first poll reads the open files of all processes anyway.
            if self.options.descriptors && self.ticks.is_none() {
                self.poll = self.counters.begin_descriptors(&self.proc);
            }
        }
    }

    fn write_poll(&mut self, writer: &mut TraceWriter) {
        let _reading = metatrace::scope("process_stats poll");
        let Self { poll, counters, tree, proc, met, was_cleared, .. } = self;
        let Some(current) = poll else { return };
        let begin_ns = boot_time_ns();
        let mut slice = Slice::new();
        if let Some(mut changed) = current.find_next(proc, counters, &mut slice, met) {
            let mut packet = writer.new_packet();
            let mut packet = begin_packet(&mut packet, begin_ns, was_cleared);
            let mut stats = packet.process_stats();
            loop {
                counters.write(&changed, proc, &mut stats);
                match current.find_next(proc, counters, &mut slice, met) {
                    Some(next) => changed = next,
                    None => break,
                }
            }
            stats.collection_end_timestamp(boot_time_ns());
        }
        if slice.scan_is_done() {
            counters.end_poll(current);
            *poll = None;
        }
        for pid in met.reused.drain(..) {
            tree.seen.remove(pid);
        }
        let mut pids = met.pids.drain(..);
        let mut slice = Slice::new();
        write_tree(tree, writer, was_cleared, |tree| pids.find_map(|pid| tree.find(proc, pid, &mut slice)));
    }
}

/// Writes a packet with all that `next` finds, or none if it finds nothing.
fn write_tree(
    tree: &mut ProcessTree,
    writer: &mut TraceWriter,
    was_cleared: &mut bool,
    mut next: impl FnMut(&mut ProcessTree) -> Option<Found>,
) {
    let begin_ns = boot_time_ns();
    let Some(mut found) = next(tree) else { return };
    let mut packet = writer.new_packet();
    let mut packet = begin_packet(&mut packet, begin_ns, was_cleared);
    let mut message = packet.process_tree();
    loop {
        tree.write(found, &mut message);
        match next(tree) {
            Some(other) => found = other,
            None => break,
        }
    }
    message.collection_end_timestamp(boot_time_ns());
}

fn begin_packet<'a>(packet: &'a mut Packet<'_>, begin_ns: u64, was_cleared: &mut bool) -> TracePacketWriter<'a> {
    let mut packet = packet.typed::<TracePacketWriter<'a>>();
    packet.timestamp(begin_ns);
    if core::mem::take(was_cleared) {
        packet.incremental_state_cleared(true);
    }
    packet
}

fn boot_time_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Gives the bytes to all parsers of this data source.
pub fn fuzz(bytes: &[u8]) {
    let status = Status::parse(bytes);
    let mut scratch = Vec::new();
    assert!(status.name(&mut scratch).len() <= bytes.len());
    assert!(status.nested_ids().count() <= bytes.len());
    let mut values = values::Values::default();
    let _ = status::parse_memory(bytes, &mut values);
    status::parse_smaps_rollup(bytes, &mut values);
    let _ = (stat::Times::parse(bytes), stat::Origin::parse(bytes));
    let _ = pid_cursor::parse_last_id(bytes);
    let _ = number::signed(bytes);
    assert!(cmdline::arguments(bytes).map(<[u8]>::len).sum::<usize>() <= bytes.len());
}
