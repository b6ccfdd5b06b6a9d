//! [`ForeignFd`]: a descriptor that another process opened and passed.
//!
//! Closing such a descriptor can block for as long as its sender wants: a TCP socket with
//! `SO_LINGER` and unsent data, or a file of a FUSE file system. Closing a unix socket can also
//! block, because the kernel closes the descriptors that still wait in its queue. An event loop
//! gives its connections a [`Disposal`], which closes on another thread. Then the loop never
//! closes, examines, reads or writes a descriptor of a peer. A client that serves only itself, such
//! as a command, needs no disposal.

use core::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Closes descriptors of one peer on a thread that may wait.
pub trait Disposal: fmt::Debug + Send + Sync {
    /// Closes a descriptor that the peer passed. Must not block.
    fn close_passed(&self, fd: OwnedFd);

    /// Closes a connection to the peer, and with it all descriptors that the kernel holds for it.
    /// Must not block.
    fn close_connection(&self, fd: OwnedFd);

    /// Decides if the peer may pass another descriptor. If not,
    /// [`Stream::recv`](crate::Stream::recv) leaves the descriptor in the kernel.
    fn admission(&self) -> Admission;
}

/// Answer to a peer that passes a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The descriptor is received.
    Granted,
    /// Other descriptors must be closed first. Nothing is received now.
    Later,
    /// Receiving fails.
    Denied,
}

/// Descriptor that a peer passed. Nothing is known about it, and any call on it can block.
///
/// Dropping it passes it to the [`Disposal`] of its connection. Without a disposal it is closed at
/// once.
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

    /// Returns the descriptor, for a thread that may block, or for a program that trusts its peer.
    #[must_use]
    pub fn into_owned(mut self) -> OwnedFd {
        self.fd.take().expect("it is taken once, by value")
    }

    /// Returns the descriptor if `is_harmless` says that no call on it blocks; otherwise returns
    /// this value.
    ///
    /// # Errors
    ///
    /// This value, if the descriptor is not harmless.
    pub fn into_owned_if(self, is_harmless: impl FnOnce(BorrowedFd<'_>) -> bool) -> Result<OwnedFd, Self> {
        let is_harmless = self.fd.as_ref().is_some_and(|fd| is_harmless(fd.as_fd()));
        if is_harmless { Ok(self.into_owned()) } else { Err(self) }
    }

    /// Duplicates the descriptor of a trusted peer. This does not change how this one is closed.
    ///
    /// # Errors
    ///
    /// The process has no descriptors left.
    pub fn try_clone(&self) -> std::io::Result<OwnedFd> {
        self.fd.as_ref().expect("it is taken once, by value").try_clone()
    }

    /// Duplicates the descriptor if it is memory: a file that can be sealed, on which no call
    /// blocks.
    ///
    /// The check does not call the descriptor's file system: the kernel itself knows files in
    /// memory. The original stays here, so that closing the duplicate never frees memory.
    ///
    /// # Errors
    ///
    /// The descriptor is something else (`EINVAL`), or the process has no descriptors left.
    #[cfg(feature = "host")]
    pub fn as_memory(&self) -> std::io::Result<OwnedFd> {
        let fd = self.fd.as_ref().expect("it is taken once, by value");
        rustix::fs::fcntl_get_seals(fd)?;
        fd.as_fd().try_clone_to_owned()
    }
}

impl From<OwnedFd> for ForeignFd {
    /// Makes one without a [`Disposal`], which is closed when it is dropped.
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
