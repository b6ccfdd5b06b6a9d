//! Wake-up of an event loop from another thread.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that the loop polls, and a request to end.
#[derive(Debug)]
pub(crate) struct Wakeup {
    eventfd: OwnedFd,
    stop: AtomicBool,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, stop: AtomicBool::new(false) })
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        // The write fails only if the counter is at its maximum: then the loop is awake already.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Makes the loop end.
    pub(crate) fn stop(&self) {
        // Release, with the Acquire below: the caller's earlier writes are visible when the loop
        // ends.
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns whether the loop should end.
    pub(crate) fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Consumes all wake-ups so far.
    pub(crate) fn reset(&self) {
        let mut count = [0; 8];
        // If there is nothing to read, there is no wake-up to consume.
        let _ = rustix::io::read(&self.eventfd, &mut count);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
