//! What stands in for a custom data source.

use core::marker::PhantomData;
use std::sync::Arc;

use crate::instance::{Recording, Slots, Ticket};
use crate::stand_ins::Destination;
use crate::sys::threads;

pub(crate) trait DataSource: Send + Sync + 'static {
    type ThreadState: Default + Send;
    type IncrementalState: Default + Send;

    const STATE_IS_BOUND: bool = false;

    fn clear_incremental_state(state: &mut Self::IncrementalState) {
        *state = Self::IncrementalState::default();
    }
}

pub(crate) struct Source<T: DataSource> {
    enabled: Recording,
    slots: Slots<Instance<T>>,
}

pub(crate) struct Instance<T> {
    pub(crate) destination: Destination,
    _object: PhantomData<T>,
}

impl<T: DataSource> Source<T> {
    pub(crate) fn new() -> Self {
        Self { enabled: Recording::new(0), slots: Slots::new() }
    }

    pub(crate) const fn slots(&self) -> &Slots<Instance<T>> {
        &self.slots
    }

    pub(crate) fn has_started(&self, slot: usize) -> bool {
        self.enabled.see() & 1 << slot != 0
    }

    /// `Source::trace_enabled`.
    pub(crate) fn trace(&'static self, event: u8) {
        if self.enabled.glance() == 0 {
            return;
        }
        threads::with(|thread| {
            let writers = thread.sources();
            let mut instances = self.enabled.see();
            while instances != 0 {
                let slot = instances.trailing_zeros() as usize;
                instances &= instances - 1;
                if let Some(writer) = writers.writer(self, 0, slot) {
                    writer.trace(&mut |context| context.write(event));
                }
            }
        });
    }

    pub(crate) fn set_up(&self, destination: Destination) -> Ticket {
        let slot = self.slots.free_slot().expect("there is a free slot");
        let instance = Instance { destination, _object: PhantomData };
        self.slots.occupy(slot, Arc::new(instance))
    }

    pub(crate) fn start(&self, ticket: Ticket) {
        self.enabled.start(ticket.slot);
    }

    pub(crate) fn close(&self, ticket: Ticket) {
        self.slots.close(ticket, || self.enabled.stop(ticket.slot));
    }

    pub(crate) fn end(&self, ticket: Ticket) {
        assert!(self.slots.vacate(ticket, || self.enabled.stop(ticket.slot)).is_some());
    }
}
