//! The end of tracing: handing over what was recorded, disconnecting, and what happens when the process exits.

use std::time::{Duration, Instant};

use crate::connection::{self, Command};
use crate::{control_thread, thread};

/// How long the end of the process, or of a [`Tracing`](crate::Tracing), may wait for the service.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Ends tracing in this process: hands over what was recorded, ends the sessions that the program controls, disconnects from all services and ends the thread that
/// talked to them. Returns when that has come about, and whether the services have got everything. False also if there was nothing to end.
///
/// Afterwards trace points do nothing, until [`Builder::start`](crate::Builder::start) connects anew, and nothing of the crate runs any more:
/// a library that is about to be unloaded, or a process that is about to fork, can rely on that. Instances of data sources whose stop is still
/// being waited for are ended at once. Threads may trace meanwhile; what they record after this was called may be lost.
///
/// Must not be called from inside of a trace point, nor from functions that the crate calls: there it does nothing. Functions that are called because tracing
/// ends may connect, to no effect.
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
    thread::flush_all();
    let Some(control) = connection::handle() else { return false };
    // One answer per service.
    let (answer, answers) = connection::answers();
    control.send(Command::Flush(answer));
    answers.wait(deadline.saturating_duration_since(Instant::now())).unwrap_or(false)
}

/// From now on the services get what was recorded when the process exits in good order: by the end of `main`, or
/// [`exit`](std::process::exit) from anywhere. When it ends in another way services that share memory with it look there.
pub(crate) fn watch() {
    crate::os::exit::at_exit(|| {
        flush(PATIENCE);
    });
}
