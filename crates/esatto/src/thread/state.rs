//! What each thread keeps: one packet sequence per instance that it has traced into.

use crate::data_source::Writers;
use crate::instance::{self, MAX_INSTANCES, Stamp};
use crate::order::Rule;
use crate::sequence::Sequence;

/// The state of a thread. Usually the thread's own, but the control thread may take it while the thread is not in a trace point.
#[derive(Debug)]
pub(crate) struct Thread {
    sequences: [Option<Box<Sequence>>; MAX_INSTANCES],
    /// For custom data sources.
    sources: Writers,
}

/// Something to be recorded.
pub(crate) trait Entry {
    /// Tells which instances record it now: for where another instance is in a slot than the thread knows.
    fn recording(&self) -> impl Fn() -> u32;

    fn write(&mut self, sequence: &mut Sequence);
}

impl Thread {
    pub(crate) const fn new() -> Self {
        Self { sequences: [const { None }; MAX_INSTANCES], sources: Writers::new() }
    }

    /// Writes `entry` for each of `instances`, which are those that were [seen](crate::instance::Recording::see) to record it, or some of them. Returns
    /// for which it was written.
    #[inline(always)]
    pub(crate) fn record(&mut self, instances: u32, entry: &mut impl Entry) -> u32 {
        let (mut rest, mut recorded) = (instances, instances);
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            match self.sequence(index, entry) {
                Some(sequence) => entry.write(sequence),
                None => recorded &= !(1 << index),
            }
        }
        recorded
    }

    /// The sequences that there are.
    pub(crate) fn sequences(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.sequences.iter_mut().flatten().map(|sequence| &mut **sequence)
    }

    /// The writers for custom data sources, up to date.
    pub(crate) fn sources(&mut self) -> &mut Writers {
        if self.sources.is_outdated() {
            self.sweep();
        }
        &mut self.sources
    }

    /// Those slots whose instance is the one that this thread knows.
    pub(crate) fn current(&self) -> u32 {
        let is_current = |stamp: Stamp, index| stamp.is_same_instance(instance::stamp(index));
        let known = self.sequences.iter().enumerate().filter_map(|(i, sequence)| Some((i, sequence.as_ref()?.stamp())));
        known.filter(|&(index, stamp)| is_current(stamp, index)).fold(0, |mask, (index, _)| mask | 1 << index)
    }

    /// The sequence for slot `index`, up to date.
    #[inline(always)]
    fn sequence(&mut self, index: usize, entry: &impl Entry) -> Option<&mut Sequence> {
        let stamp = instance::stamp(index);
        let valid = matches!(&self.sequences[index], Some(sequence) if sequence.stamp() == stamp);
        if !valid {
            self.renew(index, &entry.recording());
        }
        self.sequences[index].as_deref_mut()
    }

    /// The slot has another instance than the sequence was made for, or its incremental state was cleared.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, index: usize, recording: &dyn Fn() -> u32) {
        let (stamp, instance) = instance::get(index);
        // The instance that was seen to record may be the one before: by its successor's stamp it is seen to have stopped.
        let records = !Rule::LookAgain.is_kept() || recording() & 1 << index != 0;
        match &mut self.sequences[index] {
            Some(sequence) if stamp.is_same_instance(sequence.stamp()) => sequence.clear(stamp),
            sequence => {
                let instance = instance.filter(|_| records);
                *sequence = instance.map(|instance| Box::new(Sequence::new(&instance, stamp)));
            }
        }
        self.sweep();
    }

    /// Drops the sequences of instances that are gone, which returns their chunks.
    fn sweep(&mut self) {
        // First: whoever had ended before is seen to have, by all the stamps.
        self.sources.sweep();
        for (index, sequence) in self.sequences.iter_mut().enumerate() {
            let stamp = instance::stamp(index);
            if sequence.as_ref().is_some_and(|s| stamp == Stamp::NONE || !stamp.is_same_instance(s.stamp())) {
                *sequence = None;
            }
        }
    }

    /// Hands over what is left, as the thread ends.
    pub(crate) fn end(&mut self) {
        self.sequences = [const { None }; MAX_INSTANCES];
        self.sources.end();
    }

    /// Ends the chunks of writers that have written nothing since the last call, or of all. Returns whether those were all.
    pub(crate) fn reclaim(&mut self, all: bool) -> bool {
        self.sweep();
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

    /// Ends the chunks of all writers.
    pub(crate) fn flush(&mut self) {
        self.sweep();
        for sequence in self.sequences() {
            sequence.flush();
        }
        self.sources.flush();
    }
}
