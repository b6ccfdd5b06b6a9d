//! Descriptors that another process opened: the one door through which they come in.
//!
//! Closing such a descriptor can block for as long as its sender likes: a TCP socket with
//! `SO_LINGER` and unsent data, a file of a FUSE file system. So can closing a unix socket, because
//! the kernel closes the descriptors that still wait in its queue. An event loop gives its
//! connections a [`Disposal`], which closes on another thread. Then no descriptor of a peer is ever
//! closed, examined, read or written in the loop. A client that serves only itself, such as a
//! command, needs none.

use core::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Closes descriptors of one peer where nobody has to wait for it.
pub trait Disposal: fmt::Debug + Send + Sync {
    /// Closes a descriptor that the peer passed. Must not block.
    fn close_passed(&self, fd: OwnedFd);

    /// Closes a connection to the peer, and with it all descriptors that the kernel holds for it.
    /// Must not block.
    fn close_connection(&self, fd: OwnedFd);

    /// Whether the peer may pass another descriptor. [`Stream::recv`](crate::Stream::recv) leaves
    /// one that it may not pass in the kernel.
    fn admission(&self) -> Admission;
}

/// Answer to a peer that passes a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is received.
    Granted,
    /// Others must be closed first: nothing is received now.
    Later,
    /// Receiving fails.
    Denied,
}

/// A descriptor that a peer passed. Nothing is known about it: any call on it can block.
///
/// Dropping it hands it to the [`Disposal`] of its connection. Without one it is closed at once.
#[derive(Debug)]
pub struct ForeignFd {
    /// `None` only in `drop`.
    fd: Option<OwnedFd>,
    disposal: Option<Arc<dyn Disposal>>,
}

impl ForeignFd {
    pub(crate) fn new(fd: OwnedFd, disposal: Option<Arc<dyn Disposal>>) -> Self {
        Self { fd: Some(fd), disposal }
    }

    /// The descriptor, for a thread that may block, or for a program that trusts its peer.
    #[must_use]
    pub fn into_owned(mut self) -> OwnedFd {
        self.fd.take().expect("it is taken once, by value")
    }

    /// The descriptor, if `is_harmless` says that no call on it blocks; otherwise, this again.
    ///
    /// # Errors
    ///
    /// It is not harmless.
    pub fn into_owned_if(self, is_harmless: impl FnOnce(BorrowedFd<'_>) -> bool) -> Result<OwnedFd, Self> {
        let is_harmless = self.fd.as_ref().is_some_and(|fd| is_harmless(fd.as_fd()));
        if is_harmless { Ok(self.into_owned()) } else { Err(self) }
    }

    /// A second descriptor, from a peer that is trusted. This one is closed as it would be without.
    ///
    /// # Errors
    ///
    /// There are no descriptors left.
    pub fn try_clone(&self) -> std::io::Result<OwnedFd> {
        self.fd.as_ref().expect("it is taken once, by value").try_clone()
    }

    /// A second descriptor, if this one is memory: a file that can be sealed, of which no call
    /// blocks.
    ///
    /// The file system of the descriptor is not asked: the kernel knows memory when it sees it. The
    /// original stays here, so that the second one never frees memory when it is closed.
    ///
    /// # Errors
    ///
    /// It is something else (`EINVAL`), or there are no descriptors left.
    #[cfg(feature = "host")]
    pub fn as_memory(&self) -> std::io::Result<OwnedFd> {
        let fd = self.fd.as_ref().expect("it is taken once, by value");
        rustix::fs::fcntl_get_seals(fd)?;
        fd.as_fd().try_clone_to_owned()
    }
}

impl From<OwnedFd> for ForeignFd {
    /// Without a [`Disposal`]: it is closed where it is dropped.
    fn from(fd: OwnedFd) -> Self {
        Self::new(fd, None)
    }
}

impl Drop for ForeignFd {
    fn drop(&mut self) {
        if let (Some(fd), Some(disposal)) = (self.fd.take(), &self.disposal) {
            disposal.close_passed(fd);
        }
    }
}
