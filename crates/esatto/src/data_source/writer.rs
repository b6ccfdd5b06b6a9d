//! Writer of a thread for an instance of a custom data source.

use core::mem;
use std::sync::Arc;

use esatto_instances::{InstanceWriter, Recording, Slots};
use esatto_shm::TraceWriter;

use super::source_instances::{Instance, Instances};
use super::{Context, DataSource};

/// Writer of one thread for one instance.
pub(super) struct Writer<T: DataSource> {
    pub(super) slot: usize,
    pub(super) instance: Arc<Instance<T>>,
    pub(super) packets: TraceWriter,
    pub(super) intercepted: bool,
    pub(super) thread_state: T::ThreadState,
    pub(super) incremental_state: T::IncrementalState,
    pub(super) state_is_new: bool,
    /// Count of losses at the last trace point. If it changes, names that were announced may be
    /// lost.
    drops: u64,
    /// The writer was dropping packets at the last trace point.
    was_dropping: bool,
    /// Bytes written when the last empty packet was added.
    pub(super) written_when_emptied: u64,
    /// Bytes written when [`InstanceWriter::is_idle`] was last called.
    written_when_asked: u64,
}

impl<T: DataSource> esatto_instances::Source for Instances<T> {
    type Instance = Instance<T>;
    type Writer = Writer<T>;

    const WRITERS_ARE_BOUND: bool = T::STATE_IS_BOUND;

    fn slots(&self) -> &Slots<Instance<T>> {
        &self.slots
    }

    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn create_writer(&'static self, slot: usize, instance: Arc<Instance<T>>) -> Writer<T> {
        Writer::new(slot, instance)
    }
}

impl<T: DataSource> Writer<T> {
    fn new(slot: usize, instance: Arc<Instance<T>>) -> Self {
        Self {
            slot,
            packets: instance.destination.create_writer(),
            intercepted: instance.destination.is_intercepted(),
            instance,
            thread_state: T::ThreadState::default(),
            incremental_state: T::IncrementalState::default(),
            state_is_new: true,
            drops: 0,
            was_dropping: false,
            written_when_emptied: 0,
            written_when_asked: 0,
        }
    }

    /// Runs a trace point.
    pub(super) fn trace(&mut self, body: &mut dyn FnMut(&mut Context<'_, T>)) {
        self.begin();
        body(&mut Context::new(self));
        self.end();
    }

    /// Begins a trace point.
    pub(super) fn begin(&mut self) {
        let (drops, dropping) = (self.packets.drop_count(), self.packets.is_dropping());
        let lost = drops != mem::replace(&mut self.drops, drops);
        if mem::replace(&mut self.was_dropping, dropping) || dropping || lost {
            self.renew_state();
        }
    }

    /// Ends a trace point.
    pub(super) fn end(&mut self) {
        self.state_is_new = false;
        if self.intercepted {
            self.packets.flush();
        }
    }

    fn renew_state(&mut self) {
        if !self.state_is_new {
            T::clear_incremental_state(&mut self.incremental_state);
            self.state_is_new = true;
        }
    }
}

impl<T: DataSource> InstanceWriter for Writer<T> {
    fn clear_incremental_state(&mut self) {
        self.renew_state();
    }

    fn flush(&mut self) {
        self.packets.flush();
    }

    fn is_idle(&mut self) -> bool {
        let written = self.packets.written();
        mem::replace(&mut self.written_when_asked, written) == written
    }
}
