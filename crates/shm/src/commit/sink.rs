//! [`CommitSink`]: how commits leave an arbiter.

use core::time::Duration;

use super::request::CommitRequest;

/// Where commits go: the connection to the service, or the service itself.
///
/// Called by writer threads ([`wake`](Self::wake) and below) and by whoever calls
/// [`Arbiter::send_pending`](crate::Arbiter::send_pending). No lock that a writer needs is held during any
/// of these calls, except that calls of `commit`, `register_writer` and `unregister_writer` never overlap; these
/// three must not call back into the arbiter.
///
/// The arbiter keeps its sink alive; a sink that needs its arbiter holds a `Weak`.
pub trait CommitSink: Send + Sync {
    /// Sends a CommitData request. Requests go out in the order of these calls.
    fn commit(&self, request: CommitRequest);

    /// Sends RegisterTraceWriter.
    fn register_writer(&self, writer_id: u16, target_buffer: u16);

    /// Sends UnregisterTraceWriter.
    fn unregister_writer(&self, writer_id: u16);

    /// Something is to be sent: `send_pending` should be called soon, on the connection's thread.
    /// Must not block. Called once, until `send_pending` ran.
    fn wake(&self);

    /// Like [`wake`](Self::wake), but there is time: the configured batching delay. The default wakes at once.
    fn wake_after(&self, delay: Duration) {
        let _ = delay;
        self.wake();
    }

    /// True on the thread that sends commits: if that thread has to wait for a free chunk, it
    /// sends what is pending itself, as nobody else would.
    fn is_connection_thread(&self) -> bool {
        false
    }

    /// Lets a writer wait for a free chunk (§12). The default sleeps; a simulation lets the service run.
    fn stall(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Writers hold more than half of the chunks between them, or (`exhausted`) there is none left. Each keeps one as long as it
    /// lives, even if it never writes again: whoever can flush those that are idle should do so. The first is said again and again while more are taken.
    /// Must not block, and not flush a writer from inside of the call.
    fn on_scarce(&self, exhausted: bool) {
        let _ = exhausted;
    }

    /// A writer with [`ExhaustedPolicy::StallThenAbort`](crate::ExhaustedPolicy::StallThenAbort) has waited in vain. Upstream
    /// aborts the process; if this returns, as the default does, the writer drops.
    fn on_stalled_too_long(&self, writer_id: u16) {
        let _ = writer_id;
    }

    /// A writer was asked for while [`MAX_WRITER_ID`](crate::abi::MAX_WRITER_ID) of them live. It
    /// drops everything that is written to it, without a trace in the data. Must not block.
    fn on_writer_refused(&self) {}

    /// The peer has changed the state of a chunk that a writer had. What is in the chunk is lost.
    /// Must not block.
    fn on_chunk_lost(&self) {}
}
