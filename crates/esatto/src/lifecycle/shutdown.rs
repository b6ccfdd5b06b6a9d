//! The end of tracing: hands over the recorded data and disconnects, also when the process exits.

use super::flush::{last_flush, stop_sessions};
use crate::{connection, control_thread, start_times};

/// Ends tracing in this process. It hands over the recorded data, ends the sessions that the
/// program controls, disconnects from all services, and ends the control thread. Returns when this
/// is complete: true if the services have received everything, false if not or if there was nothing
/// to end.
///
/// Afterwards trace points do nothing, until [`Builder::start`](crate::Builder::start) connects
/// again, and no code of the crate runs, unless the program has called
/// [`complete_on_signals`](crate::complete_on_signals). A library that is about to be unloaded, or
/// a process that is about to fork, can rely on that. Instances of data sources whose stop is
/// delayed are ended at once. Threads may trace during the call; events that they record after its
/// begin may be lost.
///
/// Must not be called inside a trace point, or from functions that the crate calls: there it does
/// nothing. Functions that the crate calls because tracing ends cannot connect again.
pub fn shutdown() -> bool {
    if control_thread::is_current() {
        return false;
    }
    let complete = last_flush();
    let is_stopped = connection::stop();
    // The next `start` is the start of another recording.
    start_times::forget();
    is_stopped && complete
}

/// From now on, services get the recorded data when the process exits normally: at the end of
/// `main`, or by [`exit`](std::process::exit) anywhere. If it ends in another way, services that
/// share memory with it read that memory.
pub(crate) fn watch() {
    crate::os::exit::at_exit(|| {
        last_flush();
        stop_sessions();
    });
}
