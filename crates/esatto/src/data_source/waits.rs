//! Waits for the sessions that record this process, so that they record it from its beginning.

use core::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::registry;
use crate::category::registry as category_registry;
use crate::control_thread;

/// Event for which a program waits at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A session that may start later.
    Session,
    /// The sessions that run already, if any.
    Service,
}

/// How long the registration of a data source may wait, in milliseconds; 0: it does not.
static PATIENCE_MS: AtomicU32 = AtomicU32::new(0);

/// Waits until all data sources that sessions want have started, or the service refuses this
/// process, which is reported. Returns false if the time is over first. From then on, registrations
/// wait for the answer of the services.
pub(crate) fn wait(awaited: Awaited, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let sources = registry::registered();
    let is_any_on = || sources.iter().any(|source| source.is_recording());
    if awaited == Awaited::Session && !category_registry::wait_for_session(patience, is_any_on) {
        return false;
    }
    // A session starts several data sources one after the other.
    let answered = control_thread::await_services(deadline.saturating_duration_since(Instant::now()));
    if answered == Some(true) {
        PATIENCE_MS.store(u32::try_from(patience.as_millis()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
    // A session that has begun to record was found, even if the service does not answer.
    answered.is_some() || awaited == Awaited::Session
}

/// Waits for the start of a data source that was registered after [`wait`], if a session wants it.
pub(super) fn registered() {
    let ms = PATIENCE_MS.load(Ordering::Relaxed);
    if ms != 0 {
        control_thread::await_services(Duration::from_millis(ms.into()));
    }
}
