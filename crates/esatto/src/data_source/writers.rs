//! What each thread keeps for custom data sources: a writer and state for each instance that it has traced into.
//!
//! Owned and `Send`, so that whoever owns the threads' state may reach it from elsewhere while the thread is not in a trace point.

use core::any::Any;
use core::fmt;
use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use esatto_shm::TraceWriter;

use super::source::Instance;
use super::{Context, DataSource, Source};
use crate::instance::{self, MAX_INSTANCES, Stamp};
use crate::order::Rule;

/// The writers of one thread.
#[derive(Debug)]
pub(crate) struct Writers {
    /// By data source and slot.
    writers: Vec<[Option<Box<dyn AnyWriter>>; MAX_INSTANCES]>,
    /// [`instance::generation`] when stale writers were last looked for.
    generation: u32,
}

/// A [`Writer`] of some data source.
trait AnyWriter: Send {
    /// Of the instance that it was made for.
    fn stamp(&self) -> Stamp;

    /// False if the instance has ended.
    fn is_current(&self) -> bool;

    /// True if only the thread that made its state may drop it.
    fn is_bound(&self) -> bool;

    /// See [`TraceWriter::flush`].
    fn flush(&mut self);

    /// Whether nothing was written since the last call.
    fn is_idle(&mut self) -> bool;

    fn as_any(&mut self) -> &mut dyn Any;
}

/// What one thread keeps for one instance.
pub(super) struct Writer<T: DataSource> {
    source: &'static Source<T>,
    pub(super) slot: usize,
    stamp: Stamp,
    pub(super) instance: Arc<Instance<T>>,
    pub(super) packets: TraceWriter,
    pub(super) intercepted: bool,
    pub(super) thread_state: T::ThreadState,
    pub(super) incremental_state: T::IncrementalState,
    pub(super) state_is_new: bool,
    /// The writer's count of losses at the last trace point, and whether it was dropping then: what was announced may be lost.
    drops: u64,
    was_dropping: bool,
    /// Bytes written when the last empty packet was added.
    pub(super) written_when_emptied: u64,
    /// Bytes written when somebody asked whether the writer is idle.
    written_when_asked: u64,
}

impl Writers {
    pub(crate) const fn new() -> Self {
        Self { writers: Vec::new(), generation: 0 }
    }

    /// True if an instance of any type has ended since the last sweep.
    #[inline]
    pub(crate) fn is_outdated(&self) -> bool {
        self.generation != instance::generation()
    }

    /// Drops the writers of instances that are gone, which returns their chunks, and the state that went with them.
    pub(crate) fn sweep(&mut self) {
        self.generation = instance::seen_generation();
        self.drop_if(|writer| !writer.is_current());
    }

    /// As [`sweep`](Self::sweep), perhaps on another thread than theirs: what is [bound](DataSource::STATE_IS_BOUND) to that only gives back its memory.
    pub(crate) fn sweep_from_elsewhere(&mut self) {
        self.drop_if(|writer| !writer.is_current() && !writer.is_bound());
        let writers = self.writers.iter_mut().flatten().flatten();
        writers.filter(|writer| !writer.is_current()).for_each(|writer| writer.flush());
    }

    /// Drops all writers, and the state that went with them.
    pub(crate) fn end(&mut self) {
        self.drop_if(|_| true);
    }

    fn drop_if(&mut self, is_over: impl Fn(&dyn AnyWriter) -> bool) {
        for writer in self.writers.iter_mut().flatten() {
            if let Some(over) = writer.take_if(|writer| is_over(&**writer)) {
                // State of a data source ends with it, perhaps on the control thread, or with the thread: neither must panic.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(over)));
            }
        }
    }

    /// How many there are.
    #[cfg(esatto_loom)]
    pub(crate) fn len(&self) -> usize {
        self.writers.iter().flatten().flatten().count()
    }

    /// Ends the chunks of all writers.
    pub(crate) fn flush(&mut self) {
        self.writers.iter_mut().flatten().flatten().for_each(|writer| writer.flush());
    }

    /// Ends the chunks of those writers that have written nothing since the last call, or of all. Returns whether those were all.
    pub(crate) fn reclaim(&mut self, all: bool) -> bool {
        let mut all_idle = true;
        for writer in self.writers.iter_mut().flatten().flatten() {
            if writer.is_idle() || all {
                writer.flush();
            } else {
                all_idle = false;
            }
        }
        all_idle
    }

    /// The writer for an instance of the data source with this index; `None` if the instance has ended.
    pub(super) fn writer<T: DataSource>(
        &mut self,
        source: &'static Source<T>,
        index: usize,
        slot: usize,
    ) -> Option<&mut Writer<T>> {
        if self.writers.len() <= index {
            self.writers.resize_with(index + 1, || [const { None }; MAX_INSTANCES]);
        }
        let entry = &mut self.writers[index][slot];
        let stamp = source.slots().stamp(slot);
        if entry.as_ref().is_none_or(|writer| writer.stamp() != stamp) {
            Self::renew(entry, source, slot, stamp);
        }
        entry.as_mut()?.as_any().downcast_mut()
    }

    /// The slot has another instance than the writer was made for, or its incremental state was cleared.
    #[cold]
    #[inline(never)]
    fn renew<T: DataSource>(
        entry: &mut Option<Box<dyn AnyWriter>>,
        source: &'static Source<T>,
        slot: usize,
        stamp: Stamp,
    ) {
        match entry.as_mut().and_then(|writer| writer.as_any().downcast_mut::<Writer<T>>()) {
            Some(writer) if writer.stamp.is_same_instance(stamp) => {
                writer.stamp = stamp;
                writer.renew_state();
            }
            _ => *entry = Writer::new(source, slot).map(|writer| Box::new(writer) as Box<dyn AnyWriter>),
        }
    }
}

impl Writers {
    /// The writer that there is for an instance, as it is.
    pub(super) fn existing<T: DataSource>(
        &mut self,
        _: &'static Source<T>,
        index: usize,
        slot: usize,
    ) -> Option<&mut Writer<T>> {
        self.writers.get_mut(index)?.get_mut(slot)?.as_mut()?.as_any().downcast_mut()
    }
}

impl<T: DataSource> Writer<T> {
    #[cold]
    fn new(source: &'static Source<T>, slot: usize) -> Option<Self> {
        let (stamp, instance) = source.slots().get(slot);
        // The bit that led here may be that of the instance before: by its successor's stamp that is seen to have stopped.
        let instance = instance.filter(|_| !Rule::LookAgain.is_kept() || source.has_started(slot))?;
        Some(Self {
            source,
            slot,
            stamp,
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
        })
    }

    /// Runs a trace point.
    pub(super) fn trace(&mut self, body: &mut dyn FnMut(&mut Context<'_, T>)) {
        self.begin();
        body(&mut Context::new(self));
        self.end();
    }

    /// A trace point begins.
    pub(super) fn begin(&mut self) {
        let (drops, dropping) = (self.packets.drop_count(), self.packets.is_dropping());
        let lost = drops != mem::replace(&mut self.drops, drops);
        if mem::replace(&mut self.was_dropping, dropping) || dropping || lost {
            self.renew_state();
        }
    }

    /// A trace point ends.
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

impl<T: DataSource> AnyWriter for Writer<T> {
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn is_current(&self) -> bool {
        self.source.slots().stamp(self.slot).is_same_instance(self.stamp)
    }

    fn is_bound(&self) -> bool {
        T::STATE_IS_BOUND
    }

    fn flush(&mut self) {
        self.packets.flush();
    }

    fn is_idle(&mut self) -> bool {
        let written = self.packets.written();
        mem::replace(&mut self.written_when_asked, written) == written
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl fmt::Debug for dyn AnyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
