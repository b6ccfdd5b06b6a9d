//! Table of the instances of one data source.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use crate::orderings::Access;
use crate::stamp::{Stamp, Ticket};
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, lock, shared_static};

/// Instances of one data source that can record at the same time (`docs/spec/client-library.md`
/// §2).
pub const MAX_INSTANCES: usize = if cfg!(esatto_loom) { 1 } else { 8 };

/// Table of the instances of one data source.
///
/// The control thread fills and empties the slots; any thread reads them.
#[derive(Debug)]
pub struct Slots<I>([Slot<I>; MAX_INSTANCES]);

#[derive(Debug)]
struct Slot<I> {
    stamp: AtomicU64,
    instance: Mutex<Option<Arc<I>>>,
}

shared_static! {
    /// Epoch of the instance that was set up last; an epoch is never 0.
    static LAST_EPOCH: AtomicU32 = AtomicU32::new(0);
}

shared_static! {
    /// Number of instances of any data source that have ended. Threads compare it, to learn that
    /// they may have writers to drop.
    static ENDED: AtomicU32 = AtomicU32::new(0);
}

/// Returns the number of instances of any data source that have ended so far.
#[inline]
#[must_use]
pub fn ended_count() -> u32 {
    // Relaxed: a thread that misses a change sweeps at its next trace point.
    ENDED.load(Ordering::Relaxed)
}

/// As [`ended_count`], for a thread that reads the stamps next: they show the end of every instance
/// that is counted.
pub(crate) fn ended_count_before_stamps() -> u32 {
    ENDED.load(Access::LoadEndedCount.ordering())
}

/// Returns the epoch of the instance, of any data source, that was set up last; 0 if there was
/// none.
///
/// Stamps that are read afterwards include this instance and all earlier ones. If an instance is
/// [loaded](crate::Recording::load) as recording, its epoch has been reached.
#[inline]
pub(crate) fn last_epoch() -> u32 {
    LAST_EPOCH.load(Access::LoadLastEpoch.ordering())
}

impl<I> Slots<I> {
    /// Makes an empty table.
    #[cfg(not(esatto_loom))]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "tables are statics")]
    pub const fn new() -> Self {
        Self([const { Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) } }; MAX_INSTANCES])
    }

    /// Makes an empty table.
    #[cfg(esatto_loom)]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "tables are statics")]
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) }))
    }

    /// Returns the stamp of a slot. If it belongs to an instance, the content of the slot is
    /// visible, and so is that the instance before it has stopped recording.
    #[inline(always)]
    pub fn stamp(&self, slot: usize) -> Stamp {
        Stamp(self.0[slot].stamp.load(Access::LoadStamp.ordering()))
    }

    /// Returns the instance in a slot and its stamp. Takes a lock.
    pub fn get(&self, slot: usize) -> (Stamp, Option<Arc<I>>) {
        // An empty slot needs no lock.
        if self.stamp(slot) == Stamp::NONE {
            return (Stamp::NONE, None);
        }
        let content = self.content(slot);
        (self.stamp(slot), content.clone())
    }

    /// Returns the instance of a ticket, if it is still in its slot. Takes a lock.
    pub fn redeem(&self, ticket: Ticket) -> Option<Arc<I>> {
        if !self.holds(ticket) {
            return None;
        }
        let content = self.content(ticket.slot);
        content.clone().filter(|_| self.holds(ticket))
    }

    /// Returns a free slot. Only the control thread fills slots, so on the control thread the slot
    /// stays free until it calls [`occupy`](Self::occupy).
    pub fn free_slot(&self) -> Option<usize> {
        (0..MAX_INSTANCES).find(|&slot| self.is_free(slot))
    }

    /// Returns whether there is no instance. Called on the control thread.
    pub fn is_empty(&self) -> bool {
        (0..MAX_INSTANCES).all(|slot| self.is_free(slot))
    }

    /// Puts an instance into a free slot.
    ///
    /// Only the control thread calls this,
    /// [`clear_incremental_state`](Self::clear_incremental_state) and [`vacate`](Self::vacate).
    pub fn occupy(&self, slot: usize, instance: Arc<I>) -> Ticket {
        let mut content = self.content(slot);
        *content = Some(instance);
        let epoch = LAST_EPOCH.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.0[slot].stamp.store(Stamp::new(epoch, 0).0, Access::OccupySlot.ordering());
        LAST_EPOCH.store(epoch, Access::RaiseLastEpoch.ordering());
        Ticket { slot, epoch }
    }

    /// Makes every writer of the instance start over.
    pub fn clear_incremental_state(&self, ticket: Ticket) {
        if self.holds(ticket) {
            let stamp = &self.0[ticket.slot].stamp;
            let cleared = Stamp(stamp.load(Ordering::Relaxed)).cleared();
            stamp.store(cleared.0, Access::ClearState.ordering());
        }
    }

    /// Frees the slot of a ticket, unless its instance is already gone. Returns the instance.
    ///
    /// `stop` must clear the bits of the instance in each [`Recording`](crate::Recording), because
    /// they have to be clear before the slot is [occupied](Self::occupy) again.
    pub fn vacate(&self, ticket: Ticket, stop: impl FnOnce()) -> Option<Arc<I>> {
        if !self.holds(ticket) {
            return None;
        }
        stop();
        let mut content = self.content(ticket.slot);
        self.0[ticket.slot].stamp.store(Stamp::NONE.0, Access::VacateSlot.ordering());
        ENDED.fetch_add(1, Access::RaiseEndedCount.ordering());
        content.take()
    }

    /// Runs `stop`, which clears the bits of the ticket's instance in each
    /// [`Recording`](crate::Recording), if the instance is still in its slot.
    ///
    /// No other instance comes to the slot meanwhile. Any thread may call this. Afterwards the
    /// control thread still has to [`vacate`](Self::vacate) the slot.
    pub fn close(&self, ticket: Ticket, stop: impl FnOnce()) {
        let _content = self.content(ticket.slot);
        if self.holds(ticket) {
            stop();
        }
    }

    /// Returns the slots whose instances were set up after an epoch, as a bit mask.
    pub(crate) fn set_up_after(&self, epoch: u32) -> u32 {
        let is_after = |slot: &usize| self.stamp(*slot).is_after(epoch);
        (0..MAX_INSTANCES).filter(is_after).fold(0, |mask, slot| mask | 1 << slot)
    }

    /// Returns the slots that have an instance, as a bit mask.
    pub fn occupied(&self) -> u32 {
        let is_occupied = |slot: &usize| self.stamp(*slot) != Stamp::NONE;
        (0..MAX_INSTANCES).filter(is_occupied).fold(0, |mask, slot| mask | 1 << slot)
    }

    /// Returns the tickets of all instances.
    pub fn tickets(&self) -> Vec<Ticket> {
        let ticket = |slot: usize| {
            let stamp = self.stamp(slot);
            (stamp != Stamp::NONE).then_some(Ticket { slot, epoch: stamp.epoch() })
        };
        (0..MAX_INSTANCES).filter_map(ticket).collect()
    }

    /// Locks all slots while the process forks.
    #[cfg(not(esatto_loom))]
    pub fn hold(&self) -> HeldSlots<'_, I> {
        HeldSlots { slots: self, content: core::array::from_fn(|slot| self.content(slot)) }
    }

    fn holds(&self, ticket: Ticket) -> bool {
        Stamp(self.0[ticket.slot].stamp.load(Ordering::Relaxed)).epoch() == ticket.epoch
    }

    /// Returns whether a slot is free. Relaxed, because the control thread asks, which itself fills
    /// and empties the slots.
    fn is_free(&self, slot: usize) -> bool {
        self.0[slot].stamp.load(Ordering::Relaxed) == Stamp::NONE.0
    }

    fn content(&self, slot: usize) -> MutexGuard<'_, Option<Arc<I>>> {
        lock(&self.0[slot].instance)
    }
}

/// All slots of a table, locked while the process forks.
#[cfg(not(esatto_loom))]
#[derive(Debug)]
pub struct HeldSlots<'s, I> {
    slots: &'s Slots<I>,
    content: [MutexGuard<'s, Option<Arc<I>>>; MAX_INSTANCES],
}

#[cfg(not(esatto_loom))]
impl<I> HeldSlots<'_, I> {
    /// Empties the table in the child of a fork, because the instances belong to the parent. They
    /// are not dropped.
    pub fn forget(&mut self) {
        for (slot, content) in self.slots.0.iter().zip(&mut self.content) {
            slot.stamp.store(Stamp::NONE.0, Ordering::Release);
            core::mem::forget(content.take());
        }
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}
