//! End of the daemon: it closes its sockets, ends the sessions and completes the trace files.
//!
//! The first signal stops the sessions in order while the loop turns: producers flush, files get
//! their last data, and consumers that wait read their traces. That takes at most
//! [`STOP_TIMEOUT_NS`]. Then, or at the second signal, everything that is left ends at once.

use std::time::{Duration, Instant};

use esatto_service::Input;
use rustix::event::epoll;

use super::{EventLoop, TimerKey};
use crate::clocks;
use crate::socket_role::Role;

/// Time for which a daemon that a signal ends waits for producers and consumers.
const STOP_TIMEOUT_NS: u64 = 3_000_000_000;

/// Milliseconds for which its sessions wait for the last flush, and again for their stop. Both
/// together leave time for consumers to read.
const SESSION_STOP_TIMEOUT_MS: u32 = 1250;

/// Time for which a daemon that ends waits until trace files take their last bytes.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

impl EventLoop {
    /// Handles a signal that ends the daemon: the first one in order, the second one at once.
    pub(super) fn on_stop_signal(&mut self) {
        if let Some(signals) = &self.stop {
            // Each signal is one byte. The next one makes the descriptor readable again.
            let _ = rustix::io::read(signals, &mut [0; 1]);
        }
        if core::mem::replace(&mut self.is_stopping, true) {
            log::warn!("stopping at once: sessions end as they are");
            return self.wake.stop();
        }
        log::info!("Stopping: all sessions are flushed and stopped");
        self.manager.stopping();
        self.close_listening_sockets();
        self.monotonic.set(TimerKey::StopTimeout, clocks::monotonic_ns().saturating_add(STOP_TIMEOUT_NS));
        self.feed(Input::StopSessions { timeout_ms: SESSION_STOP_TIMEOUT_MS });
    }

    /// Ends the loop because the time for an end in order is over.
    pub(super) fn stop_timed_out(&mut self) {
        log::warn!("stopping took longer than {} s: sessions end as they are", STOP_TIMEOUT_NS / 1_000_000_000);
        self.wake.stop();
    }

    /// Tells whether a daemon that a signal ends has nothing left to wait for.
    pub(super) fn has_stopped(&self) -> bool {
        let has_taken_all = || {
            let mut consumers = self.clients.values().filter(|client| client.role == Role::Consumer);
            consumers.all(|client| client.connection.held() == 0)
        };
        self.is_stopping && self.service.is_done() && has_taken_all()
    }

    fn close_listening_sockets(&mut self) {
        for socket in self.listening.drain(..) {
            socket.listener.unlink();
            // Another thread closes the socket later. Until then the loop must get no more events
            // of it.
            if let Err(e) = epoll::delete(&self.epoll, &socket.listener) {
                log::error!("cannot stop watching {}: {e}", socket.listener.address());
            }
            self.closers.close_own(socket.listener.into());
        }
    }

    /// Ends the service: no client can connect any more, all sessions end, and trace files are
    /// completed.
    pub(super) fn end(&mut self) {
        if !self.is_stopping {
            self.manager.stopping();
        }
        self.close_listening_sockets();
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
