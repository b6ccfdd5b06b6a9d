//! Stand-in for the SDK: a sequence of events of one byte, two categories, and trace points.

use std::sync::Arc;

use esatto_instances::{
    InstanceWriter, Recording, Slots, ThreadState, ThreadTable as _, TracePoint, thread_gate, thread_table,
};
use esatto_shm::{Arbiter, ExhaustedPolicy, TraceWriter};

thread_gate! {
    /// Gate of each thread of a model.
    pub(crate) struct Gate;
}

thread_table! {
    /// All threads of a model.
    pub(crate) struct Threads: Sequence, Gate;
}

/// Instance of the data source of track events.
pub(crate) struct Instance {
    pub(crate) destination: Destination,
}

/// Buffer that an instance writes to.
pub(crate) struct Destination {
    pub(crate) arbiter: Arc<Arbiter>,
    pub(crate) buffer: u16,
}

impl Destination {
    pub(crate) fn create_writer(&self) -> TraceWriter {
        self.arbiter.create_writer(self.buffer, ExhaustedPolicy::Drop)
    }
}

loom::lazy_static! {
    pub(crate) static ref TRACK_EVENTS: Slots<Instance> = Slots::new();
    /// Word of a category.
    pub(crate) static ref CATEGORY: Recording = Recording::new(0);
    /// Word of another category.
    pub(crate) static ref OTHER_CATEGORY: Recording = Recording::new(0);
}

/// Packet sequence. Its incremental state is that something was written.
#[derive(Debug)]
pub(crate) struct Sequence {
    writer: TraceWriter,
    is_fresh: bool,
    written_before: u64,
}

/// Flag of the first event of a sequence, and of the first one after a clear.
pub(crate) const FRESH: u8 = 0x40;

impl Sequence {
    pub(crate) fn write(&mut self, event: u8) {
        let is_fresh = core::mem::replace(&mut self.is_fresh, false);
        assert!(self.writer.write(if is_fresh { event | FRESH } else { event }), "there is memory");
    }
}

impl InstanceWriter for Sequence {
    fn clear_incremental_state(&mut self) {
        self.is_fresh = true;
    }

    fn flush(&mut self) {
        self.writer.flush();
    }

    fn is_idle(&mut self) -> bool {
        let written = self.writer.written();
        core::mem::replace(&mut self.written_before, written) == written
    }
}

impl esatto_instances::Sequence for Sequence {
    type Instance = Instance;

    fn slots() -> &'static Slots<Instance> {
        &TRACK_EVENTS
    }

    fn new(_slot: usize, instance: &Instance) -> Self {
        Self { writer: instance.destination.create_writer(), is_fresh: true, written_before: 0 }
    }
}

struct Event<'r> {
    recording: &'r dyn Fn() -> u32,
    event: u8,
}

impl TracePoint<Sequence> for Event<'_> {
    fn recording(&self) -> impl Fn() -> u32 {
        self.recording
    }

    fn write(&mut self, sequence: &mut Sequence) {
        sequence.write(self.event);
    }
}

/// Runs a trace point, as the SDK does. Returns whether an instance recorded it.
pub(crate) fn trace(category: &Recording, event: u8) -> bool {
    category.peek() != 0 && record_for(&|| category.load(), event) != 0
}

/// Records an event in the instances that `recording` returns.
pub(crate) fn record_for(recording: &dyn Fn() -> u32, event: u8) -> u32 {
    let instances = recording();
    Threads::with(|thread| thread.record(instances, &mut Event { recording, event })).unwrap_or(0)
}

/// Runs a trace point of two events that consists of several calls, as those of the C library do.
/// Unless it `leaves`, the thread is still in it afterwards.
pub(crate) fn trace_in_steps(category: &Recording, events: [u8; 2], leaves: bool) -> bool {
    if category.peek() == 0 || !Threads::stay() {
        return false;
    }
    let mut recorded = true;
    for event in events {
        let write = |thread: &mut ThreadState<Sequence>| {
            thread.sequence(0, &|| category.load()).map(|sequence| sequence.write(event)).is_some()
        };
        recorded &= Threads::with_stayed(write).unwrap_or(false);
        // A trace point inside of it does nothing.
        assert!(!trace(category, 0));
    }
    if leaves {
        Threads::leave();
    }
    recorded
}

/// Flushes all threads that are not in a trace point, as the SDK does.
pub(crate) fn flush_all() {
    Threads::for_each_idle(ThreadState::flush);
}
