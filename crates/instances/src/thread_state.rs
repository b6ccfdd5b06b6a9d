//! State of a thread: its writers, one for each instance that it has traced into.

use crate::orderings::Rule;
use crate::slots::MAX_INSTANCES;
use crate::source_writers::SourceWriters;
use crate::stamp::Stamp;
use crate::writer::Sequence;

/// State of a thread. It belongs to the thread, but the control thread may take it while the thread
/// is not in a trace point.
#[derive(Debug)]
pub struct ThreadState<S> {
    sequences: [Option<Box<Stamped<S>>>; MAX_INSTANCES],
    sources: SourceWriters,
}

/// Sequence, and the stamp that it was made or cleared for.
#[derive(Debug)]
struct Stamped<S> {
    stamp: Stamp,
    sequence: S,
}

/// Event, as a thread's state sees it.
pub trait TracePoint<S> {
    /// Returns a function that loads which instances record the event now.
    ///
    /// It is called if another instance is in a slot than the thread knows. The function must not
    /// borrow the trace point: so the compiler can keep the trace point in registers.
    fn recording(&self) -> impl Fn() -> u32;

    /// Writes the event to the sequence of one instance.
    fn write(&mut self, sequence: &mut S);
}

impl<S> ThreadState<S> {
    pub(crate) const fn new() -> Self {
        Self { sequences: [const { None }; MAX_INSTANCES], sources: SourceWriters::new() }
    }
}

impl<S: Sequence> ThreadState<S> {
    /// Writes an event for each of `instances`. They must have been
    /// [loaded](crate::Recording::load) as recording it. Returns the instances for which the event
    /// was written.
    #[inline(always)]
    pub fn record(&mut self, instances: u32, event: &mut impl TracePoint<S>) -> u32 {
        let (mut rest, mut recorded) = (instances, instances);
        while rest != 0 {
            let slot = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            match self.sequence_of(slot, event) {
                Some(sequence) => event.write(sequence),
                None => recorded &= !(1 << slot),
            }
        }
        recorded
    }

    /// Returns the sequence for the instance in a slot, up to date.
    #[inline(always)]
    fn sequence_of(&mut self, slot: usize, event: &impl TracePoint<S>) -> Option<&mut S> {
        if !self.is_current(slot) {
            self.renew(slot, &event.recording());
        }
        self.sequences[slot].as_deref_mut().map(|stamped| &mut stamped.sequence)
    }

    /// Returns the sequence for the instance in a slot, up to date, to a caller that writes to it
    /// itself. `recording` is as in [`TracePoint::recording`].
    pub fn sequence(&mut self, slot: usize, recording: &dyn Fn() -> u32) -> Option<&mut S> {
        if !self.is_current(slot) {
            self.renew(slot, recording);
        }
        self.sequences[slot].as_deref_mut().map(|stamped| &mut stamped.sequence)
    }

    /// Returns whether the sequence of a slot has the slot's stamp.
    #[inline(always)]
    fn is_current(&self, slot: usize) -> bool {
        let stamp = S::slots().stamp(slot);
        matches!(&self.sequences[slot], Some(stamped) if stamped.stamp == stamp)
    }

    /// Brings the sequence of a slot up to date: the slot has another instance than the sequence
    /// was made for, or its incremental state was cleared.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, slot: usize, recording: &dyn Fn() -> u32) {
        let (stamp, instance) = S::slots().get(slot);
        // The instance that was loaded as recording may be the one before. A thread that sees the
        // stamp of its successor sees that it has stopped.
        let records = !Rule::AskAgain.is_kept() || recording() & 1 << slot != 0;
        match &mut self.sequences[slot] {
            Some(stamped) if stamp.is_same_instance(stamped.stamp) => {
                stamped.stamp = stamp;
                stamped.sequence.clear_incremental_state();
            }
            entry => {
                let instance = instance.filter(|_| records);
                *entry = instance.map(|instance| Box::new(Stamped { stamp, sequence: S::new(slot, &instance) }));
            }
        }
        self.sweep();
    }

    /// Returns all sequences, as they are.
    pub fn sequences(&mut self) -> impl Iterator<Item = &mut S> {
        self.sequences.iter_mut().flatten().map(|stamped| &mut stamped.sequence)
    }

    /// Returns the writers for custom data sources, after those of ended instances were dropped.
    pub fn sources(&mut self) -> &mut SourceWriters {
        if self.sources.is_outdated() {
            self.sweep();
        }
        &mut self.sources
    }

    /// Returns the writers for custom data sources, as they are.
    pub const fn sources_as_they_are(&mut self) -> &mut SourceWriters {
        &mut self.sources
    }

    /// Returns the slots whose instance this thread has a sequence for, as a bit mask.
    pub(crate) fn current(&self) -> u32 {
        let is_current = |slot: &usize| {
            let stamped = self.sequences[*slot].as_ref();
            stamped.is_some_and(|stamped| stamped.stamp.is_same_instance(S::slots().stamp(*slot)))
        };
        (0..MAX_INSTANCES).filter(is_current).fold(0, |mask, slot| mask | 1 << slot)
    }

    /// Ends the chunks of all writers.
    pub fn flush(&mut self) {
        self.sweep_from_elsewhere();
        for sequence in self.sequences() {
            sequence.flush();
        }
        self.sources.flush();
    }

    /// Ends the chunks of writers that have written nothing since the last call, or of all writers.
    /// Returns whether all writers were idle.
    pub fn reclaim(&mut self, all: bool) -> bool {
        self.sweep_from_elsewhere();
        let mut all_idle = self.sources.reclaim(all);
        for sequence in self.sequences() {
            if sequence.is_idle() || all {
                sequence.flush();
            } else {
                all_idle = false;
            }
        }
        all_idle
    }

    /// Hands over everything that is left, when the thread ends.
    pub(crate) fn end(&mut self) {
        self.sequences = [const { None }; MAX_INSTANCES];
        self.sources.end();
    }

    /// Drops the writers of ended instances, on the thread itself.
    fn sweep(&mut self) {
        // First, because this loads the count of ended instances: the stamps that are read
        // afterwards show the end of each of them.
        self.sources.sweep();
        self.sweep_sequences();
    }

    /// As [`sweep`](Self::sweep), possibly on another thread.
    fn sweep_from_elsewhere(&mut self) {
        self.sources.sweep_from_elsewhere();
        self.sweep_sequences();
    }

    /// Drops the sequences of ended instances, which returns their chunks.
    fn sweep_sequences(&mut self) {
        for (slot, entry) in self.sequences.iter_mut().enumerate() {
            let stamp = S::slots().stamp(slot);
            if entry.as_ref().is_some_and(|e| stamp == Stamp::NONE || !stamp.is_same_instance(e.stamp)) {
                *entry = None;
            }
        }
    }
}
