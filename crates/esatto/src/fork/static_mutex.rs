//! Mutexes in statics of the user's, which the children of a fork find free.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Locked;
use crate::sys::threads::{self, Closed};

/// All that were ever locked. How many is up to the user: they are parts of statics.
static LISTED: Mutex<Vec<&'static dyn Holdable>> = Mutex::new(Vec::new());

trait Holdable: Sync {
    fn hold(&'static self) -> Box<dyn Locked>;
}

/// A mutex that a fork waits for. Signal handlers do not record while their thread has it.
#[derive(Debug)]
pub(crate) struct StaticMutex<T> {
    mutex: Mutex<T>,
    is_listed: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Guard<T: 'static> {
    guard: MutexGuard<'static, T>,
    _closed: Closed,
}

impl<T: Send> StaticMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { mutex: Mutex::new(value), is_listed: AtomicBool::new(false) }
    }

    /// Locks. Not for what a signal handler may come to.
    pub(crate) fn lock(&'static self) -> Guard<T> {
        let closed = threads::close();
        if !self.is_listed.load(Ordering::Acquire) {
            self.list();
        }
        Guard { guard: self.mutex.lock().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }

    /// Locks, unless this is a signal handler that has interrupted somebody who may have the lock.
    pub(crate) fn lock_unless_interrupting(&'static self) -> Option<Guard<T>> {
        (!threads::is_closed()).then(|| self.lock())
    }

    /// Before it is locked for the first time: otherwise a fork could come in between.
    #[cold]
    fn list(&'static self) {
        let mut listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_listed.load(Ordering::Relaxed) {
            listed.push(self);
            self.is_listed.store(true, Ordering::Release);
        }
    }
}

impl<T: Send> Holdable for StaticMutex<T> {
    fn hold(&'static self) -> Box<dyn Locked> {
        Box::new(self.lock())
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Locks them all, while the process forks. No thread locks one while it has another one.
pub(super) fn hold_for_fork() -> impl Sized {
    let listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
    // `Locked` from here on: none is added, as that takes the list.
    let all: Vec<Box<dyn Locked>> = listed.iter().map(|mutex| mutex.hold()).collect();
    (all, listed)
}
