//! Stand-in for the control thread, and for the service that it talks to.

use std::collections::BTreeMap;
use std::sync::Arc;

use esatto_instances::{Recording, ThreadTable as _, Ticket, ended_count};
use esatto_shm::abi::{PageLayout, PageSize, PageWord};
use esatto_shm::{Arbiter, ChunkInfo, ChunkToMove, LoomRegion, Outgoing, Region, ServiceRegion};

use crate::sequence::{CATEGORY, Destination, Instance, OTHER_CATEGORY, TRACK_EVENTS, Threads, flush_all};

/// Pages of the shared memory, of one chunk each: one per thread, and as many that wait to be sent.
const PAGES: usize = 4;

/// Control thread and service.
pub(crate) struct Control {
    arbiter: Arc<Arbiter>,
    service: ServiceRegion,
    /// Buffer of each registered writer.
    registered: BTreeMap<u16, u16>,
    buffers: BTreeMap<u16, Vec<u8>>,
}

impl Control {
    /// Makes a service with no session.
    pub(crate) fn new() -> Self {
        // Made here, before there are threads, because making them orders memory.
        let _ = (&*TRACK_EVENTS, &*CATEGORY, &*OTHER_CATEGORY);
        let _ = ended_count();
        let memory = Arc::new(LoomRegion::new(PAGES, PageSize::DEFAULT, PageLayout::Div1));
        let arbiter = Arbiter::new(Arc::clone(&memory), PageSize::DEFAULT, Arc::new(())).unwrap();
        let service = ServiceRegion::new(memory, PageSize::DEFAULT).unwrap();
        Self { arbiter, service, registered: BTreeMap::new(), buffers: BTreeMap::new() }
    }

    /// Sets up an instance of track events.
    pub(crate) fn set_up(&self, buffer: u16) -> Ticket {
        let slot = TRACK_EVENTS.free_slot().expect("there is a free slot");
        TRACK_EVENTS.occupy(slot, Arc::new(Instance { destination: self.destination(buffer) }))
    }

    pub(crate) fn destination(&self, buffer: u16) -> Destination {
        Destination { arbiter: Arc::clone(&self.arbiter), buffer }
    }

    /// Starts an instance of track events, for a config with one category.
    pub(crate) fn start(&self, ticket: Ticket, category: &Recording) {
        assert!(TRACK_EVENTS.redeem(ticket).is_some());
        category.set(1 << ticket.slot);
    }

    /// Sets up and starts an instance that records a category.
    pub(crate) fn record(&self, buffer: u16, category: &Recording) -> Ticket {
        let ticket = self.set_up(buffer);
        self.start(ticket, category);
        ticket
    }

    /// Ends an instance of track events.
    pub(crate) fn end(&self, ticket: Ticket, category: &Recording) {
        assert!(TRACK_EVENTS.vacate(ticket, || category.set(0)).is_some());
    }

    /// Takes the steps of the control thread when an instance has stopped, up to the
    /// acknowledgement.
    pub(crate) fn stop(&mut self, ticket: Ticket, category: &Recording) {
        flush_all();
        self.end(ticket, category);
        flush_all();
        self.commit(0);
    }

    /// Takes the steps of the control thread when the service asks for a flush, up to the
    /// acknowledgement. Returns the content of a buffer then.
    pub(crate) fn flush(&mut self, buffer: u16) -> Vec<u8> {
        flush_all();
        self.arbiter.acknowledge_flush(1);
        self.take();
        self.scrape(buffer)
    }

    /// Returns the content of a buffer once the service has read chunks that are being written.
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

    /// Sends the pending commits, and lets the service take them. Returns the content of a buffer
    /// then.
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

    /// Returns the content of a buffer when all other threads have ended. Asserts that no chunk was
    /// lost, and that no writer is left.
    pub(crate) fn finish(mut self, buffer: u16) -> Vec<u8> {
        Threads::end_thread();
        let events = self.commit(buffer);
        for page in 0..PAGES {
            let word = self.service.region().atomic_u32(page * PageSize::DEFAULT.bytes());
            assert_eq!(PageWord(word.load(core::sync::atomic::Ordering::Relaxed)), PageWord::FREE, "a chunk is lost");
        }
        assert!(self.registered.is_empty(), "a writer is left");
        events
    }
}

/// Returns the events in a chunk.
fn fragments(info: &ChunkInfo, payload: &[u8]) -> Vec<u8> {
    let finished = info.finished_count();
    (0..usize::from(finished))
        .filter_map(|i| match payload[2 * i..] {
            [1, event, ..] => Some(event),
            // The fragment that was announced in advance.
            [0, ..] => None,
            _ => panic!("not a whole event: {payload:?}"),
        })
        .collect()
}
