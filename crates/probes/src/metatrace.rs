//! Records of the probes' own activity, and the data source `perfetto.metatrace` that writes them.
//!
//! Data sources mark what takes their time. While no session wants to know it, a mark costs one
//! load:
//!
//! ```ignore
//! let _reading = metatrace::scope("ftrace drain").with("cpu", cpu);
//! metatrace::counter("ftrace bytes", read);
//! ```
//!
//! The records wait in a ring of the process. The data source takes them every second, on a flush,
//! and when the ring is half full. If the ring is full, further records are left out, and the next
//! packets say so (`has_overruns`).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto::producer::TraceWriter;
use esatto_schema::{DataSourceDescriptor, TracePacketWriter};
use rustix::event::{EventfdFlags, eventfd};

use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::ticks::Ticks;

/// Records that the ring of the process keeps: 288 KiB.
const MAX_RECORDS: usize = 4096;

/// The records are taken at least so often.
const PERIOD: Duration = Duration::from_secs(1);

/// Records how long the returned guard lives. The name says what happens meanwhile.
pub(crate) fn scope(name: &'static str) -> Scope {
    PROBES.scope(name)
}

/// Records the value of a counter.
pub(crate) fn counter(name: &'static str, value: impl TryInto<i64>) {
    PROBES.counter(name, value);
}

/// Guard of something that takes time. Its end is recorded when it is dropped.
#[derive(Debug)]
#[must_use = "the record ends when the guard is dropped"]
pub(crate) struct Scope {
    /// Nothing while nobody records.
    open: Option<OpenScope>,
}

#[derive(Debug)]
struct OpenScope {
    activity: &'static Activity,
    name: &'static str,
    start_ns: u64,
    argument: Option<Argument>,
}

impl Scope {
    /// Adds an argument, such as the CPU that is read.
    #[inline]
    pub(crate) fn with(mut self, key: &'static str, value: u32) -> Self {
        if let Some(open) = &mut self.open {
            open.argument = Some(Argument { key, value });
        }
        self
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(OpenScope { activity, name, start_ns, argument }) = self.open.take() {
            let value = Value::Duration(boot_now_ns().saturating_sub(start_ns));
            activity.push(name, start_ns, value, argument);
        }
    }
}

/// Activity of the probes of this process.
static PROBES: Activity = Activity::new();

/// A ring of records. One data source at a time owns it.
#[derive(Debug)]
struct Activity {
    is_owned: AtomicBool,
    is_recording: AtomicBool,
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    records: VecDeque<Record>,
    has_overruns: bool,
    /// Is written when the ring gets half full.
    half_full: Option<Arc<OwnedFd>>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    name: &'static str,
    boot_ns: u64,
    tid: u32,
    value: Value,
    argument: Option<Argument>,
}

#[derive(Clone, Copy, Debug)]
struct Argument {
    key: &'static str,
    value: u32,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// Nanoseconds that an event took.
    Duration(u64),
    Counter(i32),
}

impl Activity {
    const fn new() -> Self {
        let ring = Ring { records: VecDeque::new(), has_overruns: false, half_full: None };
        Self { is_owned: AtomicBool::new(false), is_recording: AtomicBool::new(false), ring: Mutex::new(ring) }
    }

    #[inline]
    fn scope(&'static self, name: &'static str) -> Scope {
        let is_recording = self.is_recording.load(Ordering::Relaxed);
        let open = || OpenScope { activity: self, name, start_ns: boot_now_ns(), argument: None };
        Scope { open: is_recording.then(open) }
    }

    #[inline]
    fn counter(&self, name: &'static str, value: impl TryInto<i64>) {
        if self.is_recording.load(Ordering::Relaxed) {
            let value = value.try_into().unwrap_or(i64::MAX).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            self.push(name, boot_now_ns(), Value::Counter(i32::try_from(value).unwrap_or(i32::MAX)), None);
        }
    }

    #[cold]
    fn push(&self, name: &'static str, boot_ns: u64, value: Value, argument: Option<Argument>) {
        let mut ring = self.ring();
        // A scope may end after its session.
        if !self.is_recording.load(Ordering::Relaxed) {
            return;
        }
        if ring.records.len() >= MAX_RECORDS {
            ring.has_overruns = true;
            return;
        }
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        ring.records.push_back(Record { name, boot_ns, tid, value, argument });
        if let Some(half_full) = ring.half_full.as_ref().filter(|_| ring.records.len() == MAX_RECORDS / 2) {
            // It cannot fail: the counter of the descriptor is far from its end.
            let _ = rustix::io::write(half_full, &1_u64.to_ne_bytes());
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An instance of `perfetto.metatrace`.
#[derive(Debug)]
pub(crate) struct Metatrace {
    activity: &'static Activity,
    /// Is readable when the ring is half full.
    half_full: Arc<OwnedFd>,
    /// Set by the start.
    ticks: Option<Ticks>,
    /// Records being written; empty between turns.
    taken: VecDeque<Record>,
}

impl Metatrace {
    fn new(activity: &'static Activity) -> Result<Self, SetupError> {
        let half_full = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|why| SetupError(format!("cannot create an eventfd: {why}")))?;
        if activity.is_owned.swap(true, Ordering::Relaxed) {
            let reason = "another session records perfetto.metatrace, and only one at a time can; stop it first";
            return Err(SetupError(reason.into()));
        }
        Ok(Self { activity, half_full: Arc::new(half_full), ticks: None, taken: VecDeque::new() })
    }

    fn write_records(&mut self, writer: &mut TraceWriter) {
        let _ = rustix::io::read(&self.half_full, &mut [0_u8; 8]);
        let has_overruns = {
            let mut ring = self.activity.ring();
            core::mem::swap(&mut ring.records, &mut self.taken);
            core::mem::take(&mut ring.has_overruns)
        };
        for record in self.taken.drain(..) {
            let mut packet = writer.new_packet();
            let mut fields = packet.typed::<TracePacketWriter<'_>>();
            fields.timestamp(record.boot_ns);
            let mut metatrace = fields.perfetto_metatrace();
            match record.value {
                Value::Duration(ns) => metatrace.event_name(record.name).event_duration_ns(ns),
                Value::Counter(value) => metatrace.counter_name(record.name).counter_value(value),
            };
            metatrace.thread_id(record.tid);
            if let Some(Argument { key, value }) = record.argument {
                metatrace.args().key(key).value(value.to_string());
            }
            if has_overruns {
                metatrace.has_overruns(true);
            }
        }
    }
}

impl Source for Metatrace {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("perfetto.metatrace".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(_: &Instance) -> Result<Self, SetupError> {
        Self::new(&PROBES)
    }

    fn start(&mut self, now: Monotonic, _: &mut TraceWriter) {
        let mut ring = self.activity.ring();
        ring.half_full = Some(Arc::clone(&self.half_full));
        self.activity.is_recording.store(true, Ordering::Relaxed);
        self.ticks = Some(Ticks::starting(now, PERIOD));
    }

    fn flush(&mut self, writer: &mut TraceWriter) {
        self.write_records(writer);
    }

    fn stop(&mut self, writer: &mut TraceWriter) {
        self.write_records(writer);
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.ticks.as_ref().map(Ticks::deadline)
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        if let Some(ticks) = &mut self.ticks {
            ticks.take(now);
            self.write_records(writer);
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.ticks.iter().map(|_| self.half_full.as_fd()).collect()
    }
}

impl Drop for Metatrace {
    fn drop(&mut self) {
        let mut ring = self.activity.ring();
        self.activity.is_recording.store(false, Ordering::Relaxed);
        *ring = Ring { records: VecDeque::new(), has_overruns: false, half_full: None };
        self.activity.is_owned.store(false, Ordering::Relaxed);
    }
}

fn boot_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use esatto_schema::{PerfettoMetatraceReader, TracePacketReader};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::test_writer::TestWriter;

    fn activity() -> &'static Activity {
        Box::leak(Box::new(Activity::new()))
    }

    fn is_readable(source: &Metatrace) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(source.descriptors()[0], PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll") == 1
    }

    #[test]
    fn scopes_and_counters_come_with_their_names_and_thread() {
        let activity = activity();
        let mut test = TestWriter::new();
        let mut writer = test.writer();
        drop(activity.scope("before the start"));
        let mut source = Metatrace::new(activity).expect("free");
        source.start(Duration::ZERO, &mut writer);
        let scope = activity.scope("read").with("cpu", 3);
        activity.counter("bytes", 17_usize);
        activity.counter("much", u64::MAX);
        drop(scope);
        source.flush(&mut writer);
        drop(writer);
        let packets = test.packets();
        let packets: Vec<_> = packets.iter().map(|packet| TracePacketReader::new(packet)).collect();
        let metatrace: Vec<PerfettoMetatraceReader<'_>> =
            packets.iter().map(|packet| packet.perfetto_metatrace().expect("only these")).collect();
        let names = |record: &PerfettoMetatraceReader<'_>| (record.event_name().is_some(), record.counter_value());
        assert_eq!(
            metatrace.iter().map(names).collect::<Vec<_>>(),
            [(false, Some(17)), (false, Some(i32::MAX)), (true, None)]
        );
        assert_eq!(metatrace[2].event_name(), Some(&b"read"[..]));
        assert!(metatrace[2].event_duration_ns().is_some());
        let arguments: Vec<_> = metatrace[2].args().map(|argument| (argument.key(), argument.value())).collect();
        assert_eq!(arguments, [(Some(&b"cpu"[..]), Some(&b"3"[..]))]);
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert!(metatrace.iter().all(|record| record.thread_id() == Some(tid) && record.has_overruns().is_none()));
        assert!(packets[2].timestamp() <= packets[0].timestamp(), "a scope has the time of its start");
    }

    #[test]
    fn a_full_ring_wakes_its_reader_and_marks_the_loss() {
        let activity = activity();
        let mut test = TestWriter::new();
        let mut writer = test.writer();
        let mut source = Metatrace::new(activity).expect("free");
        assert!(source.descriptors().is_empty(), "not before the start");
        source.start(Duration::ZERO, &mut writer);
        for value in 0..MAX_RECORDS / 2 {
            assert!(!is_readable(&source));
            activity.counter("value", value);
        }
        assert!(is_readable(&source));
        for value in 0..MAX_RECORDS {
            activity.counter("value", value);
        }
        source.tick(Duration::from_secs(1), &mut writer);
        assert!(!is_readable(&source));
        activity.counter("last", 1);
        source.stop(&mut writer);
        drop(writer);
        let packets = test.packets();
        assert_eq!(packets.len(), MAX_RECORDS + 1);
        let has_overruns = |packet: &[u8]| {
            TracePacketReader::new(packet).perfetto_metatrace().and_then(|record| record.has_overruns())
        };
        assert_eq!(has_overruns(&packets[0]), Some(true));
        assert_eq!(has_overruns(&packets[MAX_RECORDS]), None);
    }

    #[test]
    fn one_session_at_a_time_records() {
        let activity = activity();
        let first = Metatrace::new(activity).expect("free");
        assert!(Metatrace::new(activity).is_err());
        drop(first);
        assert!(Metatrace::new(activity).is_ok());
    }
}
