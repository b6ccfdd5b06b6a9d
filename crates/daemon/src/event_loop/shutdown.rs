//! End of the daemon: it closes its sockets, ends the sessions and completes the trace files.

use std::time::{Duration, Instant};

use super::EventLoop;
use crate::socket_role::Role;

/// Time for which a daemon that ends waits until trace files take their last bytes.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

impl EventLoop {
    /// Ends the service: no client can connect any more, all sessions end, and trace files are
    /// completed.
    pub(super) fn end(&mut self) {
        self.manager.stopping();
        for socket in self.listening.drain(..) {
            socket.listener.unlink();
            self.closers.close_own(socket.listener.into());
        }
        let (consumers, producers): (Vec<_>, Vec<_>) =
            self.clients.values().map(|client| (client.role, client.id)).partition(|(role, _)| *role == Role::Consumer);
        for (_, id) in consumers.into_iter().chain(producers) {
            self.close(id, None);
        }
        let deadline = Instant::now() + FINAL_WRITE_TIMEOUT;
        while let Some(event) = self.files.wait_event(deadline) {
            self.feed_file_event(event);
        }
    }
}
