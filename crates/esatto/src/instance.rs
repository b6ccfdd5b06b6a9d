//! Data source instances: what sessions have started in this process.
//!
//! The instances of one type of data source live in a fixed table ([`Slots`]), and a word says which of them record ([`Recording`]). Both are written
//! by the control thread and read by every thread that traces. A thread compares one word per slot, the *stamp*, with the one its
//! writer was made for: equal means that nothing changed.
//!
//! # What threads can rely on while instances start, stop and follow each other in a slot
//!
//! - An event goes to an instance that records it. It never goes to one that has come to the slot meanwhile, unless that one records it, too, and
//!   never to a writer of one whose successor in the slot is known to record it.
//! - Who sees that an instance records finds it in its slot, whole.
//! - An event that was begun before the end of its instance is in the trace whole, or not at all; nobody waits for it.
//! - When an instance has ended, each thread that is not in a trace point has returned its chunk, and each of the others does when it
//!   next flushes, traces into the slot or ends, or is found outside of trace points when somebody flushes.
//! - A flush covers every event that happened before it, on whatever thread: it is in a chunk that was handed over, or is finished in one
//!   that a service can look into. So it is while threads end.
//!
//! Models in `crates/shm/tests/loom_sdk` try all interleavings of this with the code of this crate, and fail without each ordering
//! of [`order`](crate::order).

mod recording;
mod slots;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_schema::{DataSourceConfigReader, TrackEventConfig};
use esatto_shm::{Arbiter, ExhaustedPolicy, TraceWriter};

use crate::interceptor::Interception;
use crate::os::process_info::Pid;

pub(crate) use recording::Recording;
pub(crate) use slots::{HeldSlots, MAX_INSTANCES, Slots, Stamp, Ticket, generation, last_epoch, seen_generation};

/// Where an instance's packets go.
#[derive(Debug)]
pub(crate) struct Destination {
    route: Mutex<Route>,
    pid: Pid,
}

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
    fn new(route: Route) -> Self {
        Self { route: Mutex::new(route), pid: Pid::default() }
    }

    /// The same, of a service that may know this process by another number.
    pub(crate) fn with_pid(self, pid: Pid) -> Self {
        Self { pid, ..self }
    }

    /// The number of this process for that service.
    pub(crate) const fn pid(&self) -> &Pid {
        &self.pid
    }

    pub(crate) fn buffer(arbiter: Arc<Arbiter>, buffer: u16, policy: ExhaustedPolicy) -> Self {
        Self::new(Route::Buffer { arbiter, buffer, policy })
    }

    pub(crate) fn reservation(arbiter: Arc<Arbiter>, number: u16) -> Self {
        Self::new(Route::Reservation { arbiter, number })
    }

    /// Whatever a config says that is better than `otherwise`: an interceptor that it names.
    pub(crate) fn of_config(config: &[u8], otherwise: impl FnOnce() -> Self) -> Self {
        let reader = DataSourceConfigReader::new(config).interceptor_config();
        let name = reader.and_then(|reader| reader.name());
        match name.and_then(|name| Interception::new(name, config)) {
            Some(interception) => Self::new(Route::Interceptor(interception)),
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
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The slots of [`TRACK_EVENTS`] with instances that were set up after an epoch.
#[cold]
pub(crate) fn set_up_after(epoch: u32) -> u32 {
    TRACK_EVENTS.set_up_after(epoch)
}
