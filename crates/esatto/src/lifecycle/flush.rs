//! Flush of the process: hands everything that was recorded to the services.

use std::time::{Duration, Instant};

use crate::connection::{self, Command};
use crate::{control_thread, record};

/// How long the end of the process, or of a [`Tracing`](crate::Tracing), may wait for the service.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Hands everything that was recorded to the services, and waits until they have it.
pub(crate) fn flush(timeout: Duration) -> bool {
    hand_over(timeout, false)
}

/// Like [`flush`], before the process or tracing ends.
pub(crate) fn last_flush() -> bool {
    hand_over(PATIENCE, true)
}

/// Stops all sessions that the program controls, so that files which services write for them are
/// complete, and waits until they have stopped.
pub(crate) fn stop_sessions() {
    if control_thread::is_current() {
        return;
    }
    let Some(control) = connection::handle() else { return };
    let (done, answers) = connection::answers();
    control.send(Command::StopSessions(done));
    answers.wait(PATIENCE);
}

fn hand_over(timeout: Duration, is_last: bool) -> bool {
    if control_thread::is_current() {
        return false;
    }
    let deadline = Instant::now() + timeout;
    record::flush_all();
    let Some(control) = connection::handle() else { return false };
    // One answer per service.
    let (done, answers) = connection::answers();
    control.send(Command::Flush { done, is_last });
    answers.wait(deadline.saturating_duration_since(Instant::now())).unwrap_or(false)
}
