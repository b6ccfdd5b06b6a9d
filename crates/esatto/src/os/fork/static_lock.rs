//! Locks in statics that the children of a fork find free.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Locked;
use esatto_instances::ThreadGate as _;

use crate::trace_point_gate::{Closed, Gate};

/// All such locks that were ever locked. Their number is bounded by the program's statics.
static LISTED: Mutex<Vec<&'static dyn Holdable>> = Mutex::new(Vec::new());

trait Holdable: Sync {
    fn hold(&'static self) -> Box<dyn Locked>;
}

/// Lists a lock before it is locked for the first time; otherwise a fork could happen in between.
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

/// A mutex that a fork waits for. Signal handlers do not record while their thread holds it. A
/// thread that holds one must not lock another one.
#[derive(Debug)]
pub struct StaticMutex<T> {
    mutex: Mutex<T>,
    listing: Listing,
}

/// A locked lock, with the guard `G` of the standard library.
#[derive(Debug)]
pub struct Guard<G> {
    guard: G,
    _closed: Closed,
}

impl<T: Send> StaticMutex<T> {
    /// Makes a lock that is free.
    pub const fn new(value: T) -> Self {
        Self { mutex: Mutex::new(value), listing: Listing::new() }
    }

    /// Locks. Must not be called by code that a signal handler may run.
    pub fn lock(&'static self) -> Guard<MutexGuard<'static, T>> {
        let closed = Gate::close();
        self.listing.ensure(self);
        Guard { guard: self.mutex.lock().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }

    /// Locks, unless this is a signal handler that has interrupted a thread which may hold the
    /// lock.
    pub(crate) fn lock_unless_interrupting(&'static self) -> Option<Guard<MutexGuard<'static, T>>> {
        (!Gate::is_closed()).then(|| self.lock())
    }
}

impl<T> StaticMutex<T> {
    /// Locks, unless another thread holds the lock or it was never locked before.
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
    /// Frees the mutex until a notification, or spuriously, and locks it again.
    #[must_use = "it is locked again"]
    pub fn wait(self, condvar: &Condvar) -> Self {
        let Self { guard, _closed } = self;
        Self { guard: condvar.wait(guard).unwrap_or_else(PoisonError::into_inner), _closed }
    }
}

/// A [`StaticMutex`] for many readers.
#[derive(Debug)]
pub struct StaticRwLock<T> {
    lock: RwLock<T>,
    listing: Listing,
}

impl<T: Send + Sync> StaticRwLock<T> {
    /// Makes a lock that is free.
    pub const fn new(value: T) -> Self {
        Self { lock: RwLock::new(value), listing: Listing::new() }
    }

    /// Locks for reading.
    pub fn read(&'static self) -> Guard<RwLockReadGuard<'static, T>> {
        let closed = Gate::close();
        self.listing.ensure(self);
        Guard { guard: self.lock.read().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }

    /// Locks for writing.
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

/// Locks all of them while the process forks. No thread locks one while it holds another.
pub(crate) fn hold_for_fork() -> impl Sized {
    let listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
    // From here on none is added, because that takes the list.
    let all: Vec<Box<dyn Locked>> = listed.iter().map(|mutex| mutex.hold()).collect();
    (all, listed)
}
