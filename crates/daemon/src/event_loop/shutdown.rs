//! End of the daemon: it closes its sockets, ends the sessions and completes the trace files.
//!
//! The first signal stops the sessions in order while the loop turns: producers flush, files get
//! their last data, and consumers that wait read their traces. That takes at most
//! [`STOP_TIMEOUT_NS`], or [`MAX_STOP_MS`] if consumers read until then. Then, or at the second
//! signal, everything that is left ends at once.

use std::time::{Duration, Instant};

use esatto_service::Input;
use rustix::event::epoll;

use super::{EventLoop, TimerKey};
use crate::clocks;
use crate::socket_role::Role;

/// Time for which a daemon that a signal ends waits for producers and consumers.
const STOP_TIMEOUT_NS: u64 = 3_000_000_000;

/// Longest time, while consumers take bytes. The time for trace files and for the metrics file
/// follows. All three together are shorter than `TimeoutStopSec` in the unit of systemd, 15 s.
const MAX_STOP_MS: u64 = 7000;

/// Time after which a consumer that has taken no bytes does not read. A consumer needs it to ask
/// for its trace when its session has ended, which may be late because of a producer.
const READING_PAUSE_NS: u64 = 1_500_000_000;

/// Time between two looks at the progress of the end.
const STOP_CHECK_NS: u64 = 250_000_000;

/// Milliseconds for which its sessions wait for the last flush, and again for their stop.
const SESSION_STOP_TIMEOUT_MS: u32 = 1250;

/// Time for which a daemon that ends waits until trace files take their last bytes.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// An end in order that has begun.
#[derive(Debug)]
pub(super) struct Stopping {
    begun_ns: u64,
    /// Last time at which a consumer was seen to have taken bytes.
    taken_ns: u64,
    /// Sum of [`Client::bytes_taken`](crate::client::Client::bytes_taken) at that time.
    taken: u64,
}

impl Stopping {
    /// Notes the bytes that consumers have taken so far. Returns whether the time is over.
    fn is_over(&mut self, now_ns: u64, taken: u64) -> bool {
        if core::mem::replace(&mut self.taken, taken) != taken {
            self.taken_ns = now_ns;
        }
        let since = |at_ns: u64| now_ns.saturating_sub(at_ns);
        let is_read = since(self.taken_ns) < READING_PAUSE_NS;
        since(self.begun_ns) >= if is_read { MAX_STOP_MS * 1_000_000 } else { STOP_TIMEOUT_NS }
    }
}

impl EventLoop {
    /// Handles a signal that ends the daemon: the first one in order, the second one at once.
    pub(super) fn on_stop_signal(&mut self) {
        if let Some(signals) = &self.stop {
            // Each signal is one byte. The next one makes the descriptor readable again.
            let _ = rustix::io::read(signals, &mut [0; 1]);
        }
        if self.stopping.is_some() {
            log::warn!("stopping at once: sessions end as they are");
            return self.wake.stop();
        }
        log::info!("Stopping: all sessions are flushed and stopped");
        self.manager.stopping("Completing trace files");
        self.close_listening_sockets();
        let begun_ns = clocks::monotonic_ns();
        self.stopping = Some(Stopping { begun_ns, taken_ns: begun_ns, taken: self.bytes_taken() });
        self.set_stop_timer(begun_ns);
        self.feed(Input::StopSessions { timeout_ms: SESSION_STOP_TIMEOUT_MS });
    }

    fn set_stop_timer(&mut self, now_ns: u64) {
        self.monotonic.set(TimerKey::StopCheck, now_ns.saturating_add(STOP_CHECK_NS));
    }

    /// Ends the loop if the time for an end in order is over.
    pub(super) fn check_stop(&mut self) {
        let (now_ns, taken) = (clocks::monotonic_ns(), self.bytes_taken());
        let Some(stopping) = &mut self.stopping else { return };
        if stopping.is_over(now_ns, taken) {
            let lasted_s = (now_ns - stopping.begun_ns) / 1_000_000_000;
            log::warn!("stopping took longer than {lasted_s} s: sessions end as they are");
            self.wake.stop();
        } else {
            self.set_stop_timer(now_ns);
        }
    }

    /// Returns a number that changes when a consumer takes bytes.
    fn bytes_taken(&self) -> u64 {
        let consumers = self.clients.values().filter(|client| client.role == Role::Consumer);
        consumers.fold(0, |sum, client| sum.wrapping_add(client.bytes_taken()))
    }

    /// Tells whether a daemon that a signal ends has nothing left to wait for.
    pub(super) fn has_stopped(&self) -> bool {
        let has_taken_all = || {
            let mut consumers = self.clients.values().filter(|client| client.role == Role::Consumer);
            consumers.all(|client| client.connection.held() == 0)
        };
        self.stopping.is_some() && self.service.is_done() && has_taken_all()
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
        if self.stopping.is_none() {
            self.manager.stopping("Completing trace files");
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
        if self.service.is_draining() {
            self.feed(Input::FilesGivenUp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_in_order_lasts_while_a_consumer_reads() {
        let ms = |ms: u64| ms * 1_000_000;
        // Returns the end if a consumer takes bytes between these milliseconds.
        let end = |reads: core::ops::Range<u64>| {
            let mut stopping = Stopping { begun_ns: 0, taken_ns: 0, taken: 0 };
            let taken = |at_ms: u64| at_ms.clamp(reads.start, reads.end);
            stopping.taken = taken(0);
            (1..).map(|check| check * 250).find(|&at_ms| stopping.is_over(ms(at_ms), taken(at_ms))).unwrap()
        };
        assert_eq!(end(0..0), 3000);
        assert_eq!(end(0..1500), 3000);
        assert_eq!(end(2400..2600), 4250, "1.5 s after the last bytes");
        assert_eq!(end(2400..5000), 6500);
        assert_eq!(end(0..60_000), 7000);
    }
}
