//! The table of the instances of one type.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use crate::order::Access;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, lock, shared};

/// Instances of one type that can record at the same time (`docs/spec/client-library.md` §2).
pub(crate) const MAX_INSTANCES: usize = if cfg!(esatto_loom) { 1 } else { 8 };

/// Identity of an instance and of its incremental state: (epoch << 32) | number of clears. 0: no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn is_same_instance(self, other: Self) -> bool {
        self.epoch() == other.epoch()
    }

    /// Whether it is that of an instance that was set up after another one.
    pub(crate) const fn is_after(self, epoch: u32) -> bool {
        self.epoch().wrapping_sub(epoch) as i32 > 0
    }

    const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The place of an instance in its table, and which of those that ever were there it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) slot: usize,
    pub(crate) epoch: u32,
}

/// The instances of one type.
#[derive(Debug)]
pub(crate) struct Slots<I>([Slot<I>; MAX_INSTANCES]);

#[derive(Debug)]
struct Slot<I> {
    stamp: AtomicU64,
    instance: Mutex<Option<Arc<I>>>,
}

shared! {
    /// Number of instances set up so far; an epoch is never 0.
    static EPOCHS: AtomicU32 = AtomicU32::new(0);
}

shared! {
    /// Changes whenever an instance of any type has ended, so that threads know that they may have writers to give back.
    static GENERATION: AtomicU32 = AtomicU32::new(0);
}

/// See [`GENERATION`]. To be compared with [`seen_generation`].
#[inline]
pub(crate) fn generation() -> u32 {
    // Relaxed: who misses a change sweeps at its next trace point.
    GENERATION.load(Ordering::Relaxed)
}

/// As [`generation`], for who looks at the stamps next: all who had ended by then are seen to have.
pub(crate) fn seen_generation() -> u32 {
    GENERATION.load(Access::SeeGeneration.ordering())
}

/// The epoch of the instance, of any type, that was set up last; 0: none was. The stamps of all up to there are to be seen. Of one that is
/// [seen](super::Recording::see) to record, the epoch has been reached.
#[inline]
pub(crate) fn last_epoch() -> u32 {
    EPOCHS.load(Access::SeeEpoch.ordering())
}

impl<I> Slots<I> {
    #[cfg(not(esatto_loom))]
    pub(crate) const fn new() -> Self {
        Self([const { Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) } }; MAX_INSTANCES])
    }

    #[cfg(esatto_loom)]
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) }))
    }

    /// The stamp of a slot now. If it is that of an instance, its slot's content is to be seen, and that the one before it has stopped recording.
    #[inline(always)]
    pub(crate) fn stamp(&self, slot: usize) -> Stamp {
        Stamp(self.0[slot].stamp.load(Access::SeeStamp.ordering()))
    }

    /// The instance in a slot with the stamp it has. Takes a lock.
    pub(crate) fn get(&self, slot: usize) -> (Stamp, Option<Arc<I>>) {
        // Nothing to be locked.
        if self.stamp(slot) == Stamp::NONE {
            return (Stamp::NONE, None);
        }
        let content = self.content(slot);
        (self.stamp(slot), content.clone())
    }

    /// The instance of a ticket, if it is still there. Takes a lock.
    pub(crate) fn redeem(&self, ticket: Ticket) -> Option<Arc<I>> {
        if !self.holds(ticket) {
            return None;
        }
        let content = self.content(ticket.slot);
        content.clone().filter(|_| self.holds(ticket))
    }

    /// A slot that is free and stays so, as only the control thread occupies slots.
    pub(crate) fn free_slot(&self) -> Option<usize> {
        (0..MAX_INSTANCES).find(|&slot| self.is_free(slot))
    }

    /// True if there is no instance. On the control thread.
    pub(crate) fn is_empty(&self) -> bool {
        (0..MAX_INSTANCES).all(|slot| self.is_free(slot))
    }

    /// Puts an instance into a free slot.
    ///
    /// Only the control thread calls this, [`clear_incremental_state`](Self::clear_incremental_state) and [`vacate`](Self::vacate).
    pub(crate) fn occupy(&self, slot: usize, instance: Arc<I>) -> Ticket {
        let mut content = self.content(slot);
        *content = Some(instance);
        let epoch = EPOCHS.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.0[slot].stamp.store(u64::from(epoch) << 32, Access::OccupySlot.ordering());
        EPOCHS.store(epoch, Access::RaiseEpoch.ordering());
        Ticket { slot, epoch }
    }

    /// Makes every writer of the instance start over.
    pub(crate) fn clear_incremental_state(&self, ticket: Ticket) {
        if self.holds(ticket) {
            let stamp = &self.0[ticket.slot].stamp;
            let clears = (stamp.load(Ordering::Relaxed) as u32).wrapping_add(1);
            stamp.store(u64::from(ticket.epoch) << 32 | u64::from(clears), Access::ClearState.ordering());
        }
    }

    /// Frees a slot, unless the instance of the ticket is gone already. Returns what was in it.
    ///
    /// `stop` has it recorded no more, as must be before the slot is [occupied](Self::occupy) again: see [`Recording`](super::Recording).
    pub(crate) fn vacate(&self, ticket: Ticket, stop: impl FnOnce()) -> Option<Arc<I>> {
        if !self.holds(ticket) {
            return None;
        }
        stop();
        let mut content = self.content(ticket.slot);
        self.0[ticket.slot].stamp.store(Stamp::NONE.0, Access::VacateSlot.ordering());
        GENERATION.fetch_add(1, Access::RaiseGeneration.ordering());
        content.take()
    }

    /// Runs `stop`, which has the instance of the ticket recorded no more, if it is still in its
    /// slot. No other instance comes to the slot meanwhile. On any thread, unlike
    /// [`vacate`](Self::vacate), which remains to be done.
    pub(crate) fn close(&self, ticket: Ticket, stop: impl FnOnce()) {
        let _content = self.content(ticket.slot);
        if self.holds(ticket) {
            stop();
        }
    }

    /// The slots with instances that were set up after an epoch.
    pub(crate) fn set_up_after(&self, epoch: u32) -> u32 {
        let is_after = |slot: &usize| self.stamp(*slot).is_after(epoch);
        (0..MAX_INSTANCES).filter(is_after).fold(0, |mask, slot| mask | 1 << slot)
    }

    /// The instances that there are.
    pub(crate) fn tickets(&self) -> Vec<Ticket> {
        let ticket = |slot: usize| {
            let stamp = self.stamp(slot);
            (stamp != Stamp::NONE).then_some(Ticket { slot, epoch: stamp.epoch() })
        };
        (0..MAX_INSTANCES).filter_map(ticket).collect()
    }

    /// Locks all slots, while the process forks.
    #[cfg(not(esatto_loom))]
    pub(crate) fn hold(&self) -> HeldSlots<'_, I> {
        HeldSlots { slots: self, content: core::array::from_fn(|slot| self.content(slot)) }
    }

    fn holds(&self, ticket: Ticket) -> bool {
        Stamp(self.0[ticket.slot].stamp.load(Ordering::Relaxed)).epoch() == ticket.epoch
    }

    /// As who has filled and emptied it knows, which is the control thread.
    fn is_free(&self, slot: usize) -> bool {
        self.0[slot].stamp.load(Ordering::Relaxed) == Stamp::NONE.0
    }

    fn content(&self, slot: usize) -> MutexGuard<'_, Option<Arc<I>>> {
        lock(&self.0[slot].instance)
    }
}

/// The slots of a table, locked while the process forks.
#[cfg(not(esatto_loom))]
#[derive(Debug)]
pub(crate) struct HeldSlots<'s, I> {
    slots: &'s Slots<I>,
    content: [MutexGuard<'s, Option<Arc<I>>>; MAX_INSTANCES],
}

#[cfg(not(esatto_loom))]
impl<I> HeldSlots<'_, I> {
    /// In the child: the instances are the parent's. What they are made of is left alone.
    pub(crate) fn forget(&mut self) {
        for (slot, content) in self.slots.0.iter().zip(&mut self.content) {
            slot.stamp.store(Stamp::NONE.0, Ordering::Release);
            core::mem::forget(content.take());
        }
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}
