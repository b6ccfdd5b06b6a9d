//! Being told when sessions record track events (`docs/spec/track-event.md` §23).

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use esatto_schema::TrackEventConfig;

use super::{Done, Stop};

/// What a program does when sessions that record track events come and go: dump what it knows when one starts, flush its own buffers when
/// one stops.
///
/// Each session makes an instance, or more if its config lists track events more than once; instances have numbers from 0 to 7. Everything is
/// called on the thread that talks to the services, so it should not take long; a panic is caught and ignored.
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
    /// A session is about to start; nothing is recorded for it yet.
    fn on_setup(&self, session: &Started<'_>) {
        let _ = session;
    }

    /// A session has started: trace points record, and already in this call.
    fn on_start(&self, session: &Started<'_>) {
        let _ = session;
    }

    /// A session ends. Trace points record until all observers have dropped their [`Stop`], which they may do later, and on another thread.
    fn on_stop(&self, stop: Stop) {
        stop.complete();
    }

    /// All threads will begin the incremental state of a session anew, each at its next event: what readers know of names and
    /// tracks is written again.
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
    /// The number of the instance, 0 to 7, until it ends.
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// What the session wants.
    #[must_use]
    pub const fn config(&self) -> &TrackEventConfig {
        self.config
    }
}

/// Lets `observer` know of all sessions that are set up from now on, until the result is dropped. A call that has begun by then
/// goes on.
pub fn observe_sessions(observer: impl SessionObserver) -> Observation {
    static IDS: AtomicU64 = AtomicU64::new(0);
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    observers().push((id, Arc::new(observer)));
    Observation { id }
}

/// Keeps an observer; made by [`observe_sessions`].
#[must_use = "the observer is forgotten when this is dropped"]
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

/// How many times a session has started to record track events in this process. Never decreases, so a program that keeps the number sees that there
/// was a new one.
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

/// Keeps the list locked, while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    observers()
}

/// Calls every observer, without a lock, so that observers may come and go meanwhile.
fn each(call: &dyn Fn(&dyn SessionObserver)) {
    let all = observers().clone();
    for (_, observer) in all {
        let _ = catch_unwind(AssertUnwindSafe(|| call(&*observer)));
    }
}

pub(crate) fn set_up(instance: usize, config: &TrackEventConfig) {
    each(&|observer| observer.on_setup(&Started { instance, config }));
}

pub(crate) fn started(instance: usize, config: &TrackEventConfig) {
    SESSIONS.fetch_add(1, Ordering::Relaxed);
    each(&|observer| observer.on_start(&Started { instance, config }));
}

/// The instance ends when all observers have let go of it.
pub(crate) fn stopping(instance: usize, done: Done) {
    let done = Arc::new(done);
    each(&|observer| observer.on_stop(Stop::shared(instance, Arc::clone(&done))));
}

pub(crate) fn clearing(instance: usize) {
    each(&|observer| observer.will_clear_incremental_state(instance));
}
