//! Streams and a clock that a program makes up, for the simulator of this project (`tests/sim`).
//! They may change at any time.

use std::cell::Cell;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::Error;

/// One end of a made-up connection. It behaves as a non-blocking unix socket. Dropping it closes
/// the end.
pub trait Link: fmt::Debug + Send + Sync {
    /// Takes some of the bytes, and a duplicate of the descriptor with the first of them. `Ok(0)`
    /// means that it takes nothing now.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] if the other end is closed.
    fn send(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<usize, Error>;

    /// Returns the number of bytes that it stored in `buf`, and a descriptor that came with them; 0
    /// bytes at the end of the stream. `None` means that nothing has arrived.
    fn recv(&self, buf: &mut [u8]) -> Option<(usize, Option<OwnedFd>)>;

    /// Closes both directions.
    fn shutdown(&self);
}

std::thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the time of channels and servers in this thread; `None` is the real time.
pub fn set_now(now: Option<Instant>) {
    NOW.set(now);
}

pub(crate) fn now() -> Option<Instant> {
    NOW.get()
}
