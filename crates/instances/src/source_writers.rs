//! Writers of one thread for custom data sources.

use core::any::Any;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::orderings::Rule;
use crate::slots::{MAX_INSTANCES, ended_count, ended_count_before_stamps};
use crate::stamp::Stamp;
use crate::writer::{InstanceWriter, Source};

/// Writers of one thread for custom data sources, one for each instance that the thread has traced
/// into.
///
/// They are owned and `Send`, so that the owner of a thread's state can reach them from elsewhere
/// while the thread is not in a trace point.
#[derive(Debug)]
pub struct SourceWriters {
    /// By data source and slot.
    writers: Vec<[Option<Box<dyn AnyWriter>>; MAX_INSTANCES]>,
    /// [`ended_count`] of the last search for writers of ended instances.
    ended: u32,
}

/// [`Stamped`] writer of some data source.
trait AnyWriter: InstanceWriter {
    /// Returns the stamp that the writer was made or cleared for.
    fn stamp(&self) -> Stamp;

    /// Returns false if the instance has ended.
    fn is_current(&self) -> bool;

    /// Returns whether only the thread that made the writer may drop it.
    fn is_bound(&self) -> bool;

    fn as_any(&mut self) -> &mut dyn Any;
}

/// Writer, and the instance that it was made for.
struct Stamped<S: Source> {
    source: &'static S,
    slot: usize,
    stamp: Stamp,
    writer: S::Writer,
}

impl SourceWriters {
    pub(crate) const fn new() -> Self {
        Self { writers: Vec::new(), ended: 0 }
    }

    /// Returns whether an instance of any data source has ended since the last sweep.
    #[inline]
    pub(crate) fn is_outdated(&self) -> bool {
        self.ended != ended_count()
    }

    /// Drops the writers of ended instances and their state, which returns their chunks.
    pub(crate) fn sweep(&mut self) {
        self.ended = ended_count_before_stamps();
        self.drop_if(|writer| !writer.is_current());
    }

    /// As [`sweep`](Self::sweep), possibly on another thread than the owner's. Writers that are
    /// [bound](Source::WRITERS_ARE_BOUND) to the owner's thread only return their chunks.
    pub(crate) fn sweep_from_elsewhere(&mut self) {
        self.drop_if(|writer| !writer.is_current() && !writer.is_bound());
        let writers = self.writers.iter_mut().flatten().flatten();
        writers.filter(|writer| !writer.is_current()).for_each(|writer| writer.flush());
    }

    /// Drops all writers and their state.
    pub(crate) fn end(&mut self) {
        self.drop_if(|_| true);
    }

    fn drop_if(&mut self, is_over: impl Fn(&dyn AnyWriter) -> bool) {
        for entry in self.writers.iter_mut().flatten() {
            if let Some(over) = entry.take_if(|writer| is_over(&**writer)) {
                // The state of a data source is dropped here, possibly on the control thread or
                // when the thread ends. A panic must not leave either of them.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(over)));
            }
        }
    }

    /// Returns the number of writers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.writers.iter().flatten().flatten().count()
    }

    /// Ends the chunks of all writers.
    pub(crate) fn flush(&mut self) {
        self.writers.iter_mut().flatten().flatten().for_each(|writer| writer.flush());
    }

    /// Ends the chunks of writers that have written nothing since the last call, or of all writers.
    /// Returns whether all writers were idle.
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

    /// Returns the writer for the instance in a slot of a data source, up to date; `None` if the
    /// instance has ended. `index` is the number of the data source in this process.
    pub fn writer<S: Source>(&mut self, source: &'static S, index: usize, slot: usize) -> Option<&mut S::Writer> {
        if self.writers.len() <= index {
            self.writers.resize_with(index + 1, || [const { None }; MAX_INSTANCES]);
        }
        let entry = &mut self.writers[index][slot];
        let stamp = source.slots().stamp(slot);
        if entry.as_ref().is_none_or(|writer| writer.stamp() != stamp) {
            Self::renew(entry, source, slot, stamp);
        }
        Stamped::<S>::of(entry.as_mut()?).map(|stamped| &mut stamped.writer)
    }

    /// Brings a writer up to date: the slot has another instance than the writer was made for, or
    /// its incremental state was cleared.
    #[cold]
    #[inline(never)]
    fn renew<S: Source>(entry: &mut Option<Box<dyn AnyWriter>>, source: &'static S, slot: usize, stamp: Stamp) {
        match entry.as_mut().and_then(Stamped::<S>::of) {
            Some(stamped) if stamped.stamp.is_same_instance(stamp) => {
                stamped.stamp = stamp;
                stamped.writer.clear_incremental_state();
            }
            _ => *entry = Stamped::new(source, slot).map(|stamped| Box::new(stamped) as Box<dyn AnyWriter>),
        }
    }

    /// Returns the existing writer for the instance in a slot of a data source, as it is.
    pub fn existing_writer<S: Source>(&mut self, _: &'static S, index: usize, slot: usize) -> Option<&mut S::Writer> {
        let entry = self.writers.get_mut(index)?.get_mut(slot)?;
        Stamped::<S>::of(entry.as_mut()?).map(|stamped| &mut stamped.writer)
    }
}

impl<S: Source> Stamped<S> {
    #[cold]
    fn new(source: &'static S, slot: usize) -> Option<Self> {
        let (stamp, instance) = source.slots().get(slot);
        // The bit that led here may belong to the instance before. A thread that sees the stamp of
        // its successor sees that it has stopped.
        let records = || source.recording().load() & 1 << slot != 0;
        let instance = instance.filter(|_| !Rule::AskAgain.is_kept() || records())?;
        Some(Self { source, slot, stamp, writer: source.create_writer(slot, instance) })
    }

    fn of(writer: &mut Box<dyn AnyWriter>) -> Option<&mut Self> {
        writer.as_any().downcast_mut()
    }
}

impl<S: Source> InstanceWriter for Stamped<S> {
    fn clear_incremental_state(&mut self) {
        self.writer.clear_incremental_state();
    }

    fn flush(&mut self) {
        self.writer.flush();
    }

    fn is_idle(&mut self) -> bool {
        self.writer.is_idle()
    }
}

impl<S: Source> AnyWriter for Stamped<S> {
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn is_current(&self) -> bool {
        self.source.slots().stamp(self.slot).is_same_instance(self.stamp)
    }

    fn is_bound(&self) -> bool {
        S::WRITERS_ARE_BOUND
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl fmt::Debug for dyn AnyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("stamp", &self.stamp()).finish_non_exhaustive()
    }
}
