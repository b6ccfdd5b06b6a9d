//! What stands in for the rest of the SDK, and for the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use esatto_shm::abi::{PageLayout, PageSize, PageWord};
use esatto_shm::{
    Arbiter, ChunkInfo, ChunkToMove, ExhaustedPolicy, LoomRegion, Outgoing, Region, ServiceRegion, TraceWriter,
};

use crate::begun::Begun;
use crate::instance::{Recording, Slots, Stamp, Ticket};
use crate::sys::threads;
use crate::thread::{Entry, Thread};

/// Pages of the shared memory, of one chunk each: one per thread, and as many again for those that wait to be sent.
const PAGES: usize = 4;

/// An instance of the data source of track events.
pub(crate) struct Instance {
    destination: Destination,
}

/// Where its packets go.
pub(crate) struct Destination {
    arbiter: Arc<Arbiter>,
    buffer: u16,
}

impl Destination {
    pub(crate) fn create_writer(&self) -> TraceWriter {
        self.arbiter.create_writer(self.buffer, ExhaustedPolicy::Drop)
    }

    pub(crate) const fn is_intercepted(&self) -> bool {
        false
    }
}

loom::lazy_static! {
    pub(crate) static ref TRACK_EVENTS: Slots<Instance> = Slots::new();
    /// The word of a category.
    pub(crate) static ref CATEGORY: Recording = Recording::new(0);
    /// That of another one.
    pub(crate) static ref OTHER: Recording = Recording::new(0);
}

/// A packet sequence, whose incremental state is that something was written.
#[derive(Debug)]
pub(crate) struct Sequence {
    stamp: Stamp,
    writer: TraceWriter,
    fresh: bool,
    written_before: u64,
}

/// Set in the first event of a sequence, and in the first after a clear.
pub(crate) const FRESH: u8 = 0x40;

impl Sequence {
    pub(crate) fn new(instance: &Instance, stamp: Stamp) -> Self {
        Self { stamp, writer: instance.destination.create_writer(), fresh: true, written_before: 0 }
    }

    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(crate) fn clear(&mut self, stamp: Stamp) {
        self.stamp = stamp;
        self.fresh = true;
    }

    pub(crate) fn flush(&mut self) {
        self.writer.flush();
    }

    pub(crate) fn is_idle(&mut self) -> bool {
        let written = self.writer.written();
        core::mem::replace(&mut self.written_before, written) == written
    }

    pub(crate) fn write(&mut self, event: u8) {
        let fresh = core::mem::replace(&mut self.fresh, false);
        assert!(self.writer.write(if fresh { event | FRESH } else { event }), "there is memory");
    }
}

/// A trace point: `record_enabled` of the SDK. Whether some instance recorded it.
pub(crate) fn trace(category: &Recording, event: u8) -> bool {
    category.glance() != 0 && record_for(&|| category.see(), event) != 0
}

/// A trace point of two events that consists of several calls, as those of the C library do. `leaves`: otherwise it is still in it.
pub(crate) fn trace_in_steps(category: &Recording, events: [u8; 2], leaves: bool) -> bool {
    if category.glance() == 0 || !threads::stay() {
        return false;
    }
    let mut recorded = true;
    for event in events {
        let sequence =
            |thread: &mut Thread| thread.sequence_for(0, &|| category.see()).map(|to| to.write(event)).is_some();
        recorded &= threads::with_stayed(sequence).unwrap_or(false);
        // One inside of it does nothing.
        assert!(!trace(category, 0));
    }
    if leaves {
        threads::leave();
    }
    recorded
}

fn record_for(recording: &dyn Fn() -> u32, event: u8) -> u32 {
    struct Event<'r>(&'r dyn Fn() -> u32, u8);

    impl Entry for Event<'_> {
        fn recording(&self) -> impl Fn() -> u32 {
            self.0
        }

        fn write(&mut self, sequence: &mut Sequence) {
            sequence.write(self.1);
        }
    }

    let instances = recording();
    threads::with(|thread| thread.record(instances, &mut Event(recording, event))).unwrap_or(0)
}

/// That whose word is [`CATEGORY`].
pub(crate) struct Category;

impl Category {
    pub(crate) fn instances(&self) -> u32 {
        CATEGORY.see()
    }
}

pub(crate) struct Site {
    pub(crate) category: &'static Category,
    pub(crate) event: u8,
}

impl Site {
    pub(crate) const fn category(&self) -> &'static Category {
        self.category
    }
}

#[derive(Default)]
pub(crate) struct Arg<'a>(core::marker::PhantomData<&'a ()>);

/// As in the SDK.
pub(crate) fn record_begun(begun: Begun, category: &'static Category, site: &'static Site, _: &mut [Arg<'_>]) -> u32 {
    let recording = || {
        let recording = category.instances();
        recording & begun.instances()
    };
    record_for(&recording, site.event)
}

/// As in the SDK.
pub(crate) fn still_there(instances: u32) -> u32 {
    threads::with(|thread| instances & thread.current()).unwrap_or(0)
}

/// The control thread, and the service behind it.
pub(crate) struct Control {
    arbiter: Arc<Arbiter>,
    service: ServiceRegion,
    registered: BTreeMap<u16, u16>,
    buffers: BTreeMap<u16, Vec<u8>>,
}

impl Control {
    /// Nothing records.
    pub(crate) fn new() -> Self {
        // Made here, before there are threads: making them orders memory.
        let _ = (&*TRACK_EVENTS, &*CATEGORY, &*OTHER);
        crate::instance::generation();
        let memory = Arc::new(LoomRegion::new(PAGES, PageSize::DEFAULT, PageLayout::Div1));
        let arbiter = Arbiter::new(Arc::clone(&memory), PageSize::DEFAULT, Arc::new(())).unwrap();
        let service = ServiceRegion::new(memory, PageSize::DEFAULT).unwrap();
        Self { arbiter, service, registered: BTreeMap::new(), buffers: BTreeMap::new() }
    }

    /// `TrackEvents::setup`.
    pub(crate) fn set_up(&self, buffer: u16) -> Ticket {
        let slot = TRACK_EVENTS.free_slot().expect("there is a free slot");
        TRACK_EVENTS.occupy(slot, Arc::new(Instance { destination: self.destination(buffer) }))
    }

    pub(crate) fn destination(&self, buffer: u16) -> Destination {
        Destination { arbiter: Arc::clone(&self.arbiter), buffer }
    }

    /// `TrackEvents::start`, for a config with one category.
    pub(crate) fn start(&self, ticket: Ticket, category: &Recording) {
        assert!(TRACK_EVENTS.redeem(ticket).is_some());
        category.set(1 << ticket.slot);
    }

    /// An instance that records a category from now on.
    pub(crate) fn record(&self, buffer: u16, category: &Recording) -> Ticket {
        let ticket = self.set_up(buffer);
        self.start(ticket, category);
        ticket
    }

    /// `TrackEvents::end`.
    pub(crate) fn end(&self, ticket: Ticket, category: &Recording) {
        assert!(TRACK_EVENTS.vacate(ticket, || category.set(0)).is_some());
    }

    /// What the control thread does when an instance has stopped, up to the acknowledgement.
    pub(crate) fn stop(&mut self, ticket: Ticket, category: &Recording) {
        flush_all();
        self.end(ticket, category);
        flush_all();
        self.commit(0);
    }

    /// What it does when the service asks for a flush, up to the acknowledgement. Returns what is in a buffer then.
    pub(crate) fn flush(&mut self, buffer: u16) -> Vec<u8> {
        flush_all();
        self.arbiter.acknowledge_flush(1);
        self.take();
        self.scrape(buffer)
    }

    /// What is in a buffer once the service has looked into chunks that are being written.
    pub(crate) fn scrape(&self, buffer: u16) -> Vec<u8> {
        let mut events = self.buffers.get(&buffer).cloned().unwrap_or_default();
        self.service.scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                if self.registered.get(&info.writer_id) == Some(&buffer) {
                    events.extend(fragments(&info, payload));
                }
            },
        );
        events
    }

    /// Sends what is pending, and lets the service take it. Returns what is in a buffer then.
    pub(crate) fn commit(&mut self, buffer: u16) -> Vec<u8> {
        self.take();
        self.buffers.get(&buffer).cloned().unwrap_or_default()
    }

    fn take(&mut self) {
        while let Some(outgoing) = self.arbiter.poll_outgoing() {
            match outgoing {
                Outgoing::RegisterWriter { writer_id, target_buffer } => {
                    assert_eq!(self.registered.insert(writer_id, target_buffer), None, "its id was free");
                }
                Outgoing::UnregisterWriter { writer_id } => {
                    assert!(self.registered.remove(&writer_id).is_some(), "it was registered");
                }
                Outgoing::Commit(request) => request.moves.iter().for_each(|entry| self.take_chunk(entry)),
            }
        }
    }

    fn take_chunk(&mut self, entry: &ChunkToMove) {
        let mut payload = Vec::new();
        let info = self.service.take_chunk(entry.page, entry.chunk, &mut payload).expect("it was committed");
        let events = fragments(&info, &payload);
        self.buffers.entry(entry.target_buffer).or_default().extend(events);
    }

    /// When all other threads have ended: what is in a buffer. No chunk was lost, and no writer is left.
    pub(crate) fn finish(mut self, buffer: u16) -> Vec<u8> {
        threads::end();
        let events = self.commit(buffer);
        for page in 0..PAGES {
            let word = self.service.region().atomic_u32(page * PageSize::DEFAULT.bytes());
            assert_eq!(PageWord(word.load(core::sync::atomic::Ordering::Relaxed)), PageWord::FREE, "a chunk is lost");
        }
        assert!(self.registered.is_empty(), "a writer is lost");
        events
    }
}

/// `thread::flush_all` of the SDK.
pub(crate) fn flush_all() {
    threads::for_each_idle(Thread::flush);
}

/// The events in a chunk.
fn fragments(info: &ChunkInfo, payload: &[u8]) -> Vec<u8> {
    let finished = info.finished_count();
    (0..usize::from(finished))
        .filter_map(|i| match payload[2 * i..] {
            [1, event, ..] => Some(event),
            // The one that was announced in advance.
            [0, ..] => None,
            _ => panic!("not a whole event: {payload:?}"),
        })
        .collect()
}
