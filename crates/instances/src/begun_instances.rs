//! Instances in which a slice was begun that may outlive them.

use crate::orderings::Rule;
use crate::slots::last_epoch;
use crate::thread_table::ThreadTable;
use crate::writer::Sequence;

/// Instances in which something was begun: only they get the rest of it.
///
/// Unlike a bit mask of slots, this stays correct when instances end and others come to their
/// slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct BegunInstances {
    instances: u32,
    /// Epoch of the last instance that was set up when `instances` was correct.
    epoch: u32,
}

impl BegunInstances {
    /// No instance.
    pub const NONE: Self = Self { instances: 0, epoch: 0 };

    /// Returns the value as a number, from which [`from_bits`](Self::from_bits) makes it again.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.epoch as u64) << 32 | self.instances as u64
    }

    /// Makes the value of a number that [`to_bits`](Self::to_bits) returned in this process.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "takes the halves apart")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { instances: bits as u32, epoch: (bits >> 32) as u32 }
    }

    /// Returns the instances that are still there, as a bit mask. The mask may be out of date a
    /// moment later; [`among`](Self::among) takes care of that.
    #[inline]
    #[must_use]
    pub fn mask<S: Sequence>(self) -> u32 {
        self.mask_at::<S>(last_epoch())
    }

    /// Returns those of `recording` that have the begin. `recording` are instances that were
    /// [loaded](crate::Recording::load) as recording: the load must come first, because it shows
    /// that their epochs have been reached.
    #[inline]
    #[must_use]
    pub fn among<S: Sequence>(self, recording: u32) -> u32 {
        recording & self.mask::<S>()
    }

    #[inline]
    fn mask_at<S: Sequence>(self, now: u32) -> u32 {
        if self.epoch == now { self.instances } else { self.instances & !S::slots().set_up_after(self.epoch) }
    }

    /// Adds the instances in which `record` begins it, which `record` returns as a bit mask.
    pub fn add<T: ThreadTable>(&mut self, record: impl FnOnce() -> u32) {
        let before = last_epoch();
        let had = Self { instances: self.mask_at::<T::Sequence>(before), epoch: before };
        let mut added = record();
        let now = last_epoch();
        if now != before && Rule::TellApart.is_kept() {
            // Another instance may have come to a slot since. The thread's sequence belongs to the
            // one that has the begin.
            added &= still_there::<T>(added);
        }
        *self = Self { instances: had.mask_at::<T::Sequence>(now) | added, epoch: now };
    }
}

/// Returns those of `instances` that are still in their slots. This thread has just written to all
/// of them.
#[cold]
fn still_there<T: ThreadTable>(instances: u32) -> u32 {
    T::enter().map_or(0, |thread| instances & thread.current())
}
