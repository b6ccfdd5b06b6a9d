//! Sleeps until another thread or a timer is ready.

use core::marker::PhantomData;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Address;

/// Wakes the control thread, from any thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pending: Mutex<bool>,
    woken: Condvar,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn wake(&self) {
        if !core::mem::replace(&mut *self.lock(), true) {
            self.0.woken.notify_one();
        }
    }

    /// Clears all wake-ups so far. The caller looks for their reasons afterwards.
    pub(crate) fn clear(&self) {
        *self.lock() = false;
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The readiness of a file that the thread waits for: there are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest<'a> {
    never: core::convert::Infallible,
    of: PhantomData<&'a ()>,
}

impl Interest<'_> {
    pub(crate) const fn wants_write(&self) -> bool {
        match self.never {}
    }
}

/// Waits until another thread wakes this one, or the time is over. May return early.
pub(crate) fn wait<'a>(waker: &'a Waker, _: impl Iterator<Item = Interest<'a>>, timeout: Option<Duration>) {
    let pending = waker.lock();
    match timeout {
        Some(timeout) => drop(waker.0.woken.wait_timeout_while(pending, timeout, |pending| !*pending)),
        None => drop(waker.0.woken.wait_while(pending, |pending| !*pending)),
    }
}

/// Watches for a socket file that appears, which does not exist here.
#[derive(Debug)]
pub(crate) struct DirectoryWatch(Address);

impl DirectoryWatch {
    pub(crate) const fn of(address: &Address) -> Option<Self> {
        match *address {}
    }

    pub(crate) const fn interest(&self) -> Interest<'_> {
        match self.0 {}
    }

    pub(crate) const fn has_changed(&self) -> bool {
        match self.0 {}
    }
}
