//! Wakes the event loop up from another thread.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that the loop polls, and the wish to stop.
#[derive(Debug)]
pub(crate) struct Wakeup {
    eventfd: OwnedFd,
    stop: AtomicBool,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, stop: AtomicBool::new(false) })
    }

    /// Makes the loop look around.
    pub(crate) fn wake(&self) {
        // It only fails if the counter is at its maximum: then the loop is awake anyway.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Makes the loop end.
    pub(crate) fn stop(&self) {
        // Release, with the Acquire below: what the caller did before is visible to the loop's end.
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether the loop should end.
    pub(crate) fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Takes all wake-ups that came so far.
    pub(crate) fn reset(&self) {
        let mut count = [0; 8];
        // Nothing to read means nothing to take.
        let _ = rustix::io::read(&self.eventfd, &mut count);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
