//! Stand-in for a custom data source.

use std::sync::Arc;

use esatto_instances::{InstanceWriter, Recording, Slots, ThreadTable as _, Ticket};
use esatto_shm::TraceWriter;

use crate::sequence::{Destination, Threads};

/// Data source whose trace points write one byte.
pub(crate) struct Source {
    recording: Recording,
    slots: Slots<Destination>,
}

/// Writer of one thread for one instance.
pub(crate) struct Writer(TraceWriter);

impl InstanceWriter for Writer {
    fn clear_incremental_state(&mut self) {}

    fn flush(&mut self) {
        self.0.flush();
    }

    fn is_idle(&mut self) -> bool {
        false
    }
}

impl esatto_instances::Source for Source {
    type Instance = Destination;
    type Writer = Writer;

    const WRITERS_ARE_BOUND: bool = false;

    fn slots(&self) -> &Slots<Destination> {
        &self.slots
    }

    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn create_writer(&'static self, _: usize, destination: Arc<Destination>) -> Writer {
        Writer(destination.create_writer())
    }
}

impl Source {
    pub(crate) fn new() -> Self {
        Self { recording: Recording::new(0), slots: Slots::new() }
    }

    pub(crate) fn has_started(&self, slot: usize) -> bool {
        self.recording.load() & 1 << slot != 0
    }

    /// Runs a trace point, as the SDK does.
    pub(crate) fn trace(&'static self, event: u8) {
        if self.recording.peek() == 0 {
            return;
        }
        Threads::with(|thread| {
            let writers = thread.sources();
            let mut instances = self.recording.load();
            while instances != 0 {
                let slot = instances.trailing_zeros() as usize;
                instances &= instances - 1;
                if let Some(writer) = writers.writer(self, 0, slot) {
                    assert!(writer.0.write(event), "there is memory");
                }
            }
        });
    }

    pub(crate) fn set_up(&self, destination: Destination) -> Ticket {
        let slot = self.slots.free_slot().expect("there is a free slot");
        self.slots.occupy(slot, Arc::new(destination))
    }

    pub(crate) fn start(&self, ticket: Ticket) {
        self.recording.start(ticket.slot);
    }

    pub(crate) fn close(&self, ticket: Ticket) {
        self.slots.close(ticket, || self.recording.stop(ticket.slot));
    }

    pub(crate) fn end(&self, ticket: Ticket) {
        assert!(self.slots.vacate(ticket, || self.recording.stop(ticket.slot)).is_some());
    }
}
