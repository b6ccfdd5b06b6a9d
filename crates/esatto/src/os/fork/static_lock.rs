//! Locks in statics of the user's, which the children of a fork find free.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Locked;
use esatto_instances::ThreadGate as _;

use crate::thread_gate::{Closed, Gate};

/// All that were ever locked. How many is up to the user: they are parts of statics.
static LISTED: Mutex<Vec<&'static dyn Holdable>> = Mutex::new(Vec::new());

trait Holdable: Sync {
    fn hold(&'static self) -> Box<dyn Locked>;
}

/// Puts a lock on the list before it is locked for the first time: otherwise a fork could come in between.
#[derive(Debug)]
struct Listing(AtomicBool);

impl Listing {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn ensure(&self, lock: &'static dyn Holdable) {
        if !self.0.load(Ordering::Acquire) {
            self.add(lock);
        }
    }

    #[cold]
    fn add(&self, lock: &'static dyn Holdable) {
        let mut listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.load(Ordering::Relaxed) {
            listed.push(lock);
            self.0.store(true, Ordering::Release);
        }
    }
}

/// A mutex that a fork waits for. Signal handlers do not record while their thread has it. Who has one must not lock another one.
#[derive(Debug)]
pub struct StaticMutex<T> {
    mutex: Mutex<T>,
    listing: Listing,
}

/// Has a lock; of type `G` in the standard library.
#[derive(Debug)]
pub struct Guard<G> {
    guard: G,
    _closed: Closed,
}

impl<T: Send> StaticMutex<T> {
    /// Not locked.
    pub const fn new(value: T) -> Self {
        Self { mutex: Mutex::new(value), listing: Listing::new() }
    }

    /// Locks. Not for what a signal handler may come to.
    pub fn lock(&'static self) -> Guard<MutexGuard<'static, T>> {
        let closed = Gate::close();
        self.listing.ensure(self);
        Guard { guard: self.mutex.lock().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }

    /// Locks, unless this is a signal handler that has interrupted somebody who may have the lock.
    pub(crate) fn lock_unless_interrupting(&'static self) -> Option<Guard<MutexGuard<'static, T>>> {
        (!Gate::is_closed()).then(|| self.lock())
    }
}

impl<T> StaticMutex<T> {
    /// Locks, unless another thread has the lock or nobody has locked yet.
    #[cfg(feature = "in-process")]
    pub(crate) fn try_lock(&'static self) -> Option<Guard<MutexGuard<'static, T>>> {
        let closed = Gate::close();
        let is_listed = self.listing.0.load(Ordering::Acquire);
        let guard = self.mutex.try_lock().ok().filter(|_| is_listed)?;
        Some(Guard { guard, _closed: closed })
    }
}

impl<T: Send> Holdable for StaticMutex<T> {
    fn hold(&'static self) -> Box<dyn Locked> {
        Box::new(self.lock())
    }
}

impl<'m, T> Guard<MutexGuard<'m, T>> {
    /// Frees the mutex until somebody notifies, or for nothing.
    #[must_use = "it is locked again"]
    pub fn wait(self, condvar: &Condvar) -> Self {
        let Self { guard, _closed } = self;
        Self { guard: condvar.wait(guard).unwrap_or_else(PoisonError::into_inner), _closed }
    }
}

/// As [`StaticMutex`], for many readers.
#[derive(Debug)]
pub struct StaticRwLock<T> {
    lock: RwLock<T>,
    listing: Listing,
}

impl<T: Send + Sync> StaticRwLock<T> {
    /// Not locked.
    pub const fn new(value: T) -> Self {
        Self { lock: RwLock::new(value), listing: Listing::new() }
    }

    /// Locks for reading.
    pub fn read(&'static self) -> Guard<RwLockReadGuard<'static, T>> {
        let closed = Gate::close();
        self.listing.ensure(self);
        Guard { guard: self.lock.read().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }

    /// Locks.
    pub fn write(&'static self) -> Guard<RwLockWriteGuard<'static, T>> {
        let closed = Gate::close();
        self.listing.ensure(self);
        Guard { guard: self.lock.write().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }
}

impl<T: Send + Sync> Holdable for StaticRwLock<T> {
    fn hold(&'static self) -> Box<dyn Locked> {
        Box::new(self.write())
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Locks them all, while the process forks. No thread locks one while it has another one.
pub(crate) fn hold_for_fork() -> impl Sized {
    let listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
    // `Locked` from here on: none is added, as that takes the list.
    let all: Vec<Box<dyn Locked>> = listed.iter().map(|mutex| mutex.hold()).collect();
    (all, listed)
}
