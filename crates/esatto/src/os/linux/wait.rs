//! Sleeps until a socket, another thread or a timer is ready.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use esatto_instances::Uncancelled;
use esatto_ipc::sys::{PollFd, poll};

use crate::os::kernel;

/// Wakes the control thread, from any thread. Costs a system call, unless a wake-up is pending.
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
            let _uncancelled = Uncancelled::begin();
            // Fails only if the counter is full, which also wakes.
            let _ = rustix::io::write(&self.0.fd, &1_u64.to_ne_bytes());
        }
    }

    /// Returns a descriptor that becomes readable with a wake-up.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    /// Clears all wake-ups so far. The caller looks for their reasons afterwards.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0.fd, &mut [0_u8; 8]);
        self.0.pending.store(false, Ordering::Release);
    }
}

/// The readiness of a file that the thread waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) wants_write: bool,
}

impl Interest<'_> {
    /// Returns whether it waits to write.
    pub(crate) fn wants_write(&self) -> bool {
        self.wants_write
    }
}

/// Waits until one of `interests` is ready, another thread wakes this one, or the time is over. May
/// return early.
pub(crate) fn wait<'a>(waker: &'a Waker, interests: impl Iterator<Item = Interest<'a>>, timeout: Option<Duration>) {
    let mut fds = vec![PollFd::new(waker.fd(), false)];
    fds.extend(interests.map(|interest| PollFd::new(interest.fd, interest.wants_write)));
    // After an interrupted or failed wait, the caller looks and waits again.
    let _ = poll(&mut fds, timeout);
}
