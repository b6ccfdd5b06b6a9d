//! Data source instances: what sessions have started in this process.
//!
//! Instances live in a fixed table. Its slots are written by the control thread and read by every thread that traces. A thread compares one
//! word per slot, the *stamp*, with the one its sequence was made for: equal means that nothing changed.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esatto_schema::TrackEventConfig;
use esatto_shm::{Arbiter, ExhaustedPolicy};

/// Instances that can record at the same time (`docs/spec/client-library.md` §2).
pub(crate) const MAX_INSTANCES: usize = 8;

/// What a thread needs to write for an instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) arbiter: Arc<Arbiter>,
    pub(crate) target_buffer: u16,
    pub(crate) policy: ExhaustedPolicy,
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
            && !self.thread_time
    }

    pub(crate) fn new(config: &TrackEventConfig) -> Self {
        Self {
            incremental_timestamps: !config.disable_incremental_timestamps.unwrap_or(false),
            unit_ns: config.timestamp_unit_multiplier.unwrap_or(1).max(1),
            filter_annotations: config.filter_debug_annotations.unwrap_or(false),
            filter_dynamic_names: config.filter_dynamic_event_names.unwrap_or(false),
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

struct Slot {
    stamp: AtomicU64,
    instance: Mutex<Option<Arc<Instance>>>,
}

static SLOTS: [Slot; MAX_INSTANCES] =
    [const { Slot { stamp: AtomicU64::new(0), instance: Mutex::new(None) } }; MAX_INSTANCES];

/// Number of instances set up so far; an epoch is never 0.
static EPOCHS: AtomicU64 = AtomicU64::new(0);

/// The stamp of slot `index` now.
#[inline]
pub(crate) fn stamp(index: usize) -> Stamp {
    // Acquire: pairs with the release in `occupy`, after which the slot's content is to be seen.
    Stamp(SLOTS[index].stamp.load(Ordering::Acquire))
}

/// The instance in slot `index` with the stamp it has. Takes a lock.
pub(crate) fn get(index: usize) -> (Stamp, Option<Arc<Instance>>) {
    let slot = SLOTS[index].instance.lock().unwrap_or_else(PoisonError::into_inner);
    (stamp(index), slot.clone())
}

/// Puts an instance into a free slot and returns its index; `None` if there is none.
///
/// Only the control thread calls this, [`clear_incremental_state`] and [`vacate`].
pub(crate) fn occupy(instance: Instance) -> Option<usize> {
    let instance = Arc::new(instance);
    for (index, slot) in SLOTS.iter().enumerate() {
        let mut content = slot.instance.lock().unwrap_or_else(PoisonError::into_inner);
        if content.is_none() {
            *content = Some(instance);
            let epoch = (EPOCHS.fetch_add(1, Ordering::Relaxed) + 1) & u64::from(u32::MAX);
            slot.stamp.store(epoch.max(1) << 32, Ordering::Release);
            return Some(index);
        }
    }
    None
}

/// Makes every sequence of the instance start over.
pub(crate) fn clear_incremental_state(index: usize) {
    let slot = &SLOTS[index].stamp;
    let stamp = slot.load(Ordering::Relaxed);
    let clears = (stamp as u32).wrapping_add(1);
    slot.store((stamp >> 32 << 32) | u64::from(clears), Ordering::Release);
}

/// Frees a slot.
pub(crate) fn vacate(index: usize) {
    let mut content = SLOTS[index].instance.lock().unwrap_or_else(PoisonError::into_inner);
    SLOTS[index].stamp.store(0, Ordering::Release);
    *content = None;
}
