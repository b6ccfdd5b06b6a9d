//! Observers of sessions that record track events (`docs/spec/track-event.md` §23).

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esatto_schema::TrackEventConfig;

use super::{Done, Stop};
use crate::callbacks::shielded;

/// Callbacks for the start and the end of sessions that record track events. For example, a program
/// writes its state when one starts, or flushes its own buffers when one stops.
///
/// Each session makes an instance, or more if its config lists track events more than once.
/// Instances have numbers from 0 to 7. The control thread makes all calls, so they should not take
/// long. Panics are caught and ignored.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// use esatto::{SessionObserver, Started};
///
/// struct Cache;
///
/// impl SessionObserver for Cache {
///     fn on_start(&self, _: &Started<'_>) {
///         esatto::instant!(APP, "cache", entries = 17);
///     }
/// }
///
/// let observing = esatto::observe_sessions(Cache);
/// // … until this is dropped:
/// drop(observing);
/// ```
pub trait SessionObserver: Send + Sync + 'static {
    /// A session is about to start. Nothing is recorded for it yet.
    fn on_setup(&self, session: &Started<'_>) {
        let _ = session;
    }

    /// A session has started. Trace points record, including those in this call.
    fn on_start(&self, session: &Started<'_>) {
        let _ = session;
    }

    /// A session ends. Trace points record until all observers have dropped their [`Stop`]. They
    /// may do so later, and on another thread.
    fn on_stop(&self, stop: Stop) {
        stop.complete();
    }

    /// All threads will restart the incremental state of a session, each at its next event: they
    /// write again what readers know of names and tracks.
    fn will_clear_incremental_state(&self, instance: usize) {
        let _ = instance;
    }
}

/// A session, as an observer sees it.
#[derive(Debug)]
pub struct Started<'a> {
    instance: usize,
    config: &'a TrackEventConfig,
}

impl Started<'_> {
    /// Returns the number of the instance, 0 to 7, until it ends.
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// Returns the config of the session.
    #[must_use]
    pub const fn config(&self) -> &TrackEventConfig {
        self.config
    }
}

/// Calls `observer` for all sessions that are set up from now on, until the result is dropped. A
/// call that has begun continues.
pub fn observe_sessions(observer: impl SessionObserver) -> Observation {
    static IDS: AtomicU64 = AtomicU64::new(0);
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    observers().push((id, Arc::new(observer)));
    Observation { id }
}

/// Keeps an observer registered; made by [`observe_sessions`].
#[must_use = "the observer is removed when this is dropped"]
pub struct Observation {
    id: u64,
}

impl Drop for Observation {
    fn drop(&mut self) {
        let mut all = observers();
        let place = all.iter().position(|(id, _)| *id == self.id);
        let observer = place.map(|place| all.remove(place));
        // The program's destructor runs without the lock.
        drop(all);
        drop(observer);
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation").finish_non_exhaustive()
    }
}

/// Returns how many times a session has started to record track events in this process. The number
/// never decreases: a program that remembers it notices a new session.
#[must_use]
pub fn session_count() -> u64 {
    SESSIONS.load(Ordering::Relaxed)
}

static SESSIONS: AtomicU64 = AtomicU64::new(0);

type Observers = Vec<(u64, Arc<dyn SessionObserver>)>;

fn observers() -> std::sync::MutexGuard<'static, Observers> {
    static OBSERVERS: Mutex<Observers> = Mutex::new(Vec::new());
    OBSERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the list while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    observers()
}

/// Calls every observer, without a lock, so that observers may be added and removed meanwhile.
fn each(call: &dyn Fn(&dyn SessionObserver)) {
    let all = observers().clone();
    for (_, observer) in all {
        shielded(|| call(&*observer));
    }
}

pub(crate) fn set_up(instance: usize, config: &TrackEventConfig) {
    each(&|observer| observer.on_setup(&Started { instance, config }));
}

pub(crate) fn started(instance: usize, config: &TrackEventConfig) {
    SESSIONS.fetch_add(1, Ordering::Relaxed);
    each(&|observer| observer.on_start(&Started { instance, config }));
}

/// Tells the observers. The instance ends when all of them have dropped their [`Stop`].
pub(crate) fn stopping(instance: usize, done: Done) {
    let done = Arc::new(done);
    each(&|observer| observer.on_stop(Stop::shared(instance, Arc::clone(&done))));
}

pub(crate) fn clearing(instance: usize) {
    each(&|observer| observer.will_clear_incremental_state(instance));
}
