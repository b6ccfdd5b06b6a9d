//! The end of tracing: hands over what was recorded, disconnects, and does so when the process
//! exits.

use std::time::{Duration, Instant};

use crate::connection::{self, Command};
use crate::{control_thread, record};

/// How long the end of the process, or of a [`Tracing`](crate::Tracing), may wait for the service.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Ends tracing in this process. It hands over what was recorded, ends the sessions that the
/// program controls, disconnects from all services, and ends the control thread. Returns when this
/// is complete: true if the services have received everything, false if not or if there was nothing
/// to end.
///
/// Afterwards trace points do nothing, until [`Builder::start`](crate::Builder::start) connects
/// again, and no code of the crate runs: a library that is about to be unloaded, or a process that
/// is about to fork, can rely on that. Instances of data sources whose stop is delayed are ended at
/// once. Threads may trace during the call; what they record after its begin may be lost.
///
/// Must not be called inside a trace point, nor from functions that the crate calls: there it does
/// nothing. If a function that is called because tracing ends connects, that has no effect.
pub fn shutdown() -> bool {
    if control_thread::is_current() {
        return false;
    }
    let complete = flush(PATIENCE);
    connection::stop() && complete
}

/// Hands everything that was recorded to the services, and waits until they have it.
pub(crate) fn flush(timeout: Duration) -> bool {
    if control_thread::is_current() {
        return false;
    }
    let deadline = Instant::now() + timeout;
    record::flush_all();
    let Some(control) = connection::handle() else { return false };
    // One answer per service.
    let (answer, answers) = connection::answers();
    control.send(Command::Flush(answer));
    answers.wait(deadline.saturating_duration_since(Instant::now())).unwrap_or(false)
}

/// From now on, services get what was recorded when the process exits normally: at the end of
/// `main`, or by [`exit`](std::process::exit) anywhere. If it ends in another way, services that
/// share memory with it read that memory.
pub(crate) fn watch() {
    crate::os::exit::at_exit(|| {
        flush(PATIENCE);
    });
}
