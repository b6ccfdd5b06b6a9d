//! Wakes the control thread.

use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes the control thread, from any thread. Costs a system call unless a wake-up is pending.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
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
