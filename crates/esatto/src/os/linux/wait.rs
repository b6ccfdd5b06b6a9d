//! Sleeping until a socket, another thread or a timer wants something.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use esatto_ipc::sys::{PollFd, poll};

use crate::os::kernel;

/// Wakes the control thread, from any thread. Costs a system call unless a wake-up is pending.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = kernel::eventfd()?;
        Ok(Self(Arc::new(Inner { fd, pending: AtomicBool::new(false) })))
    }

    pub(crate) fn wake(&self) {
        if !self.0.pending.swap(true, Ordering::AcqRel) {
            // Fails only if the counter is full, which wakes as well.
            let _ = rustix::io::write(&self.0.fd, &1_u64.to_ne_bytes());
        }
    }

    /// Becomes readable when somebody wakes.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    /// Takes note of all wake-ups so far; whatever they were for is to be looked at afterwards.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0.fd, &mut [0_u8; 8]);
        self.0.pending.store(false, Ordering::Release);
    }
}

/// What of a file is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) wants_write: bool,
}

impl Interest<'_> {
    /// Whether something waits to be written.
    pub(crate) fn wants_write(&self) -> bool {
        self.wants_write
    }
}

/// Waits until one of `interests` is ready, somebody wakes or the time is over. May return early.
pub(crate) fn wait<'a>(waker: &'a Waker, interests: impl Iterator<Item = Interest<'a>>, timeout: Option<Duration>) {
    let mut fds = vec![PollFd::new(waker.fd(), false)];
    fds.extend(interests.map(|interest| PollFd::new(interest.fd, interest.wants_write)));
    // An interrupted or failed wait only means another round.
    let _ = poll(&mut fds, timeout);
}
