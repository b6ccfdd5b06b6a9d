//! Data source instances: what sessions have started in this process.
//!
//! The instances of one type of data source live in a fixed table ([`Slots`]). It is written by the control thread and read by every
//! thread that traces. A thread compares one word per slot, the *stamp*, with the one its writer was made for: equal means that
//! nothing changed.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_schema::{DataSourceConfigReader, TrackEventConfig};
use esatto_shm::{Arbiter, ExhaustedPolicy, TraceWriter};

use crate::interceptor::Interception;

/// Instances of one type that can record at the same time (`docs/spec/client-library.md` §2).
pub(crate) const MAX_INSTANCES: usize = 8;

/// Where an instance's packets go.
#[derive(Debug)]
pub(crate) struct Destination(Mutex<Route>);

#[derive(Debug)]
enum Route {
    /// To a buffer of a service.
    Buffer { arbiter: Arc<Arbiter>, buffer: u16, policy: ExhaustedPolicy },
    /// Kept in shared memory until a session adopts the instance (`docs/spec/shared-memory.md` §14).
    Reservation { arbiter: Arc<Arbiter>, number: u16 },
    /// To a function of this process, and nowhere else.
    Interceptor(Interception),
}

impl Destination {
    pub(crate) const fn buffer(arbiter: Arc<Arbiter>, buffer: u16, policy: ExhaustedPolicy) -> Self {
        Self(Mutex::new(Route::Buffer { arbiter, buffer, policy }))
    }

    pub(crate) const fn reservation(arbiter: Arc<Arbiter>, number: u16) -> Self {
        Self(Mutex::new(Route::Reservation { arbiter, number }))
    }

    /// Whatever a config says that is better than `otherwise`: an interceptor that it names.
    pub(crate) fn of_config(config: &[u8], otherwise: impl FnOnce() -> Self) -> Self {
        let reader = DataSourceConfigReader::new(config).interceptor_config();
        let name = reader.and_then(|reader| reader.name());
        match name.and_then(|name| Interception::new(name, config)) {
            Some(interception) => Self(Mutex::new(Route::Interceptor(interception))),
            None => otherwise(),
        }
    }

    /// A writer for the calling thread. Takes a lock, allocates.
    pub(crate) fn create_writer(&self) -> TraceWriter {
        match &*self.lock() {
            Route::Buffer { arbiter, buffer, policy } => arbiter.create_writer(*buffer, *policy),
            Route::Reservation { arbiter, number } => arbiter.create_startup_writer(*number),
            Route::Interceptor(interception) => interception.create_writer(),
        }
    }

    /// The instance is about to start.
    pub(crate) fn begin(&self) {
        if let Some(interception) = self.interception() {
            interception.start();
        }
    }

    /// The instance is about to stop.
    pub(crate) fn end(&self) {
        if let Some(interception) = self.interception() {
            interception.stop();
        }
    }

    fn interception(&self) -> Option<Interception> {
        match &*self.lock() {
            Route::Interceptor(interception) => Some(interception.clone()),
            _ => None,
        }
    }

    /// Packets have to be handed over at the end of each trace point.
    pub(crate) fn is_intercepted(&self) -> bool {
        matches!(&*self.lock(), Route::Interceptor(_))
    }

    /// The session of a reservation has come: writers made from now on are ordinary ones.
    pub(crate) fn adopt(&self, buffer: u16, policy: ExhaustedPolicy) {
        let mut route = self.lock();
        if let Route::Reservation { arbiter, .. } = &*route {
            let arbiter = Arc::clone(arbiter);
            *route = Route::Buffer { arbiter, buffer, policy };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Route> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread needs to write track events for an instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) destination: Destination,
    pub(crate) config: Arc<TrackEventConfig>,
    pub(crate) options: Options,
}

/// The part of a `TrackEventConfig` that changes how events are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Timestamps are differences to the previous one of the sequence.
    pub(crate) incremental_timestamps: bool,
    /// Nanoseconds per unit of a timestamp; never 0.
    pub(crate) unit_ns: u64,
    /// Leave out debug annotations.
    pub(crate) filter_annotations: bool,
    /// Replace names made at run time.
    pub(crate) filter_dynamic_names: bool,
    /// Each event is handed over at its end.
    pub(crate) intercepted: bool,
    /// Tell with each event of a thread how long the thread has run.
    pub(crate) thread_time: bool,
    /// Time between two readings of that; 0: at each event.
    pub(crate) thread_time_subsampling_ns: u64,
}

impl Options {
    /// Whether events are written as they are by default.
    pub(crate) const fn is_plain(&self) -> bool {
        self.incremental_timestamps
            && self.unit_ns == 1
            && !self.filter_annotations
            && !self.filter_dynamic_names
            && !self.intercepted
            && !self.thread_time
    }

    pub(crate) fn new(config: &TrackEventConfig) -> Self {
        Self {
            incremental_timestamps: !config.disable_incremental_timestamps.unwrap_or(false),
            unit_ns: config.timestamp_unit_multiplier.unwrap_or(1).max(1),
            filter_annotations: config.filter_debug_annotations.unwrap_or(false),
            filter_dynamic_names: config.filter_dynamic_event_names.unwrap_or(false),
            intercepted: false,
            thread_time: config.enable_thread_time_sampling.unwrap_or(false),
            thread_time_subsampling_ns: config.thread_time_subsampling_ns.unwrap_or(0),
        }
    }
}

/// Identity of an instance and of its incremental state: (epoch << 32) | number of clears. 0: no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn is_same_instance(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
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

/// Number of instances set up so far; an epoch is never 0.
static EPOCHS: AtomicU32 = AtomicU32::new(0);

/// Changes whenever an instance of any type has ended, so that threads know that they may have writers to give back.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// See [`GENERATION`].
#[inline]
pub(crate) fn generation() -> u32 {
    // Relaxed: who misses a change sweeps at its next trace point.
    GENERATION.load(Ordering::Relaxed)
}

impl<I> Slots<I> {
    pub(crate) const fn new() -> Self {
        Self([const { Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) } }; MAX_INSTANCES])
    }

    /// The stamp of a slot now.
    #[inline]
    pub(crate) fn stamp(&self, slot: usize) -> Stamp {
        // Acquire: pairs with the release in `occupy`, after which the slot's content is to be seen.
        Stamp(self.0[slot].stamp.load(Ordering::Acquire))
    }

    /// The instance in a slot with the stamp it has. Takes a lock.
    pub(crate) fn get(&self, slot: usize) -> (Stamp, Option<Arc<I>>) {
        let content = self.content(slot);
        (self.stamp(slot), content.clone())
    }

    /// The instance of a ticket, if it is still there. Takes a lock.
    pub(crate) fn redeem(&self, ticket: Ticket) -> Option<Arc<I>> {
        let content = self.content(ticket.slot);
        content.clone().filter(|_| self.holds(ticket))
    }

    /// A slot that is free and stays so, as only the control thread occupies slots.
    pub(crate) fn free_slot(&self) -> Option<usize> {
        (0..MAX_INSTANCES).find(|&slot| self.content(slot).is_none())
    }

    /// True if there is no instance.
    pub(crate) fn is_empty(&self) -> bool {
        (0..MAX_INSTANCES).all(|slot| self.content(slot).is_none())
    }

    /// Puts an instance into a free slot.
    ///
    /// Only the control thread calls this, [`clear_incremental_state`](Self::clear_incremental_state) and [`vacate`](Self::vacate).
    pub(crate) fn occupy(&self, slot: usize, instance: Arc<I>) -> Ticket {
        let mut content = self.content(slot);
        *content = Some(instance);
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        self.0[slot].stamp.store(u64::from(epoch) << 32, Ordering::Release);
        Ticket { slot, epoch }
    }

    /// Makes every writer of the instance start over.
    pub(crate) fn clear_incremental_state(&self, slot: usize) {
        let slot = &self.0[slot].stamp;
        let stamp = slot.load(Ordering::Relaxed);
        let clears = (stamp as u32).wrapping_add(1);
        slot.store((stamp >> 32 << 32) | u64::from(clears), Ordering::Release);
    }

    /// Frees a slot, unless the instance of the ticket is gone already. Returns what was in it.
    pub(crate) fn vacate(&self, ticket: Ticket) -> Option<Arc<I>> {
        let mut content = self.content(ticket.slot);
        if !self.holds(ticket) {
            return None;
        }
        self.0[ticket.slot].stamp.store(0, Ordering::Release);
        GENERATION.fetch_add(1, Ordering::Relaxed);
        content.take()
    }

    /// The instances that there are.
    pub(crate) fn tickets(&self) -> Vec<Ticket> {
        let ticket = |slot: usize| {
            let epoch = (self.stamp(slot).0 >> 32) as u32;
            (epoch != 0).then_some(Ticket { slot, epoch })
        };
        (0..MAX_INSTANCES).filter_map(ticket).collect()
    }

    /// Locks all slots, while the process forks.
    pub(crate) fn hold(&self) -> HeldSlots<'_, I> {
        HeldSlots { slots: self, content: core::array::from_fn(|slot| self.content(slot)) }
    }

    fn holds(&self, ticket: Ticket) -> bool {
        self.0[ticket.slot].stamp.load(Ordering::Relaxed) >> 32 == u64::from(ticket.epoch)
    }

    fn content(&self, slot: usize) -> MutexGuard<'_, Option<Arc<I>>> {
        self.0[slot].instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of a table, locked while the process forks.
#[derive(Debug)]
pub(crate) struct HeldSlots<'s, I> {
    slots: &'s Slots<I>,
    content: [MutexGuard<'s, Option<Arc<I>>>; MAX_INSTANCES],
}

impl<I> HeldSlots<'_, I> {
    /// In the child: the instances are the parent's. What they are made of is left alone.
    pub(crate) fn forget(&mut self) {
        for (slot, content) in self.slots.0.iter().zip(&mut self.content) {
            slot.stamp.store(0, Ordering::Release);
            core::mem::forget(content.take());
        }
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

/// The instances of the data source of track events.
pub(crate) static TRACK_EVENTS: Slots<Instance> = Slots::new();

/// The stamp of a slot of [`TRACK_EVENTS`] now.
#[inline]
pub(crate) fn stamp(slot: usize) -> Stamp {
    TRACK_EVENTS.stamp(slot)
}

/// The instance in a slot of [`TRACK_EVENTS`] with the stamp it has. Takes a lock.
pub(crate) fn get(slot: usize) -> (Stamp, Option<Arc<Instance>>) {
    TRACK_EVENTS.get(slot)
}

/// The epoch of the instance, of any type, that was set up last; 0: none was.
#[inline]
pub(crate) fn last_epoch() -> u32 {
    EPOCHS.load(Ordering::Relaxed)
}

/// The slots of [`TRACK_EVENTS`] with instances that were set up after an epoch.
#[cold]
pub(crate) fn set_up_after(epoch: u32) -> u32 {
    let is_after = |slot: &usize| ((stamp(*slot).0 >> 32) as u32).wrapping_sub(epoch) as i32 > 0;
    (0..MAX_INSTANCES).filter(is_after).fold(0, |mask, slot| mask | 1 << slot)
}
