//! [`Notify`]: calls from the threads that write to the thread that owns the connection.

use core::time::Duration;

/// Notifications of an arbiter to the owner of the connection.
///
/// The threads that write make these calls. They hold no lock that a writer needs. No call may
/// block, except [`stall`](Self::stall), and no call may use the writer that makes it.
///
/// The arbiter keeps this value alive. An implementation that needs its arbiter holds a `Weak`.
///
/// `()` is an implementation for programs that poll the arbiter whenever they have written.
pub trait Notify: Send + Sync {
    /// There is data to send. The thread of the connection should call
    /// [`Arbiter::poll_outgoing`](crate::Arbiter::poll_outgoing) soon.
    ///
    /// There is one call until the arbiter was polled.
    fn wake(&self);

    /// Like [`wake`](Self::wake), but the thread may wait for the configured batching delay. The
    /// default wakes it at once.
    fn wake_after(&self, delay: Duration) {
        let _ = delay;
        self.wake();
    }

    /// Sends the pending commits if this is the thread of the connection. Returns whether it is.
    ///
    /// A writer makes this call before it waits for a free chunk, and when half of the memory waits
    /// to be sent. On the thread of the connection nothing else would send those chunks meanwhile.
    /// The default returns false.
    fn send_on_connection_thread(&self) -> bool {
        false
    }

    /// Lets a writer wait for a free chunk (§12). The default sleeps; a simulation lets the service
    /// run.
    fn stall(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Writers hold more than half of the chunks, or, if `exhausted`, no chunk is left.
    ///
    /// Each writer keeps one chunk as long as it lives, even if it never writes again. If the
    /// program can flush idle writers, it should do so now. The arbiter repeats the call while
    /// writers take more chunks.
    fn on_scarce(&self, exhausted: bool) {
        let _ = exhausted;
    }

    /// The arbiter made no writer because [`MAX_WRITER_ID`](crate::abi::MAX_WRITER_ID) of them are
    /// alive. The program gets a null writer, which drops everything and leaves no mark in the
    /// data.
    fn on_writer_refused(&self) {}

    /// A writer begins to drop packets because no chunk is free. The data has a mark there.
    fn on_drop(&self) {}

    /// The peer has changed the state of a chunk that a writer had. The content of the chunk is
    /// lost.
    fn on_chunk_lost(&self) {}
}

impl Notify for () {
    fn wake(&self) {}
}
