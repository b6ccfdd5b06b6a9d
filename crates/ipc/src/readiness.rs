//! [`Readiness`]: the waiting that an async runtime does for a connection.

use std::io;
use std::task::{Context, Poll};
use std::time::Instant;

/// Events of a socket to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Something to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

/// Waiting for one socket and for a time. Implement it to use a connection with your runtime.
///
/// After `Ready`, the caller reads or writes what the socket has or takes, and then polls again. So
/// an edge-triggered source forgets its readiness before it returns `Ready`, except for the end of
/// the stream, which it reports each time.
pub trait Readiness {
    /// Returns `Ready` if there may be something to read.
    ///
    /// # Errors
    ///
    /// The runtime cannot wait.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns `Ready` if there may be room to write.
    ///
    /// # Errors
    ///
    /// The runtime cannot wait.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns `Ready` if the time has come.
    fn poll_sleep_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()>;
}
