//! What the compiler cannot check: state of threads that other threads may take hold of, the processor's counter, forks, signals and exits.
//!
//! The only module of the crate with `unsafe` in it.

#![allow(unsafe_code)]

pub(crate) mod biased;
pub(crate) mod counter;
pub(crate) mod exit;
#[cfg(all(test, any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
#[path = "../../tests/filter/mod.rs"]
mod filter;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) mod fork;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
#[path = "no_fork.rs"]
pub(crate) mod fork;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[cfg_attr(
    any(esatto_portable, not(feature = "in-process")),
    allow(dead_code, reason = "what only some of it asks for")
)]
pub(crate) mod kernel;
#[cfg(unix)]
pub(crate) mod signals;
#[cfg(not(unix))]
#[path = "no_signals.rs"]
pub(crate) mod signals;
mod sync;
pub(crate) mod threads;

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Asks the system now what [`biased`] will want to know.
pub(crate) fn ask_for_barrier() {
    sync::has_barrier();
}

/// A place for something that is never freed.
#[derive(Debug)]
pub(crate) struct Leaked<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Leaked<T> {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or what `set` was given, which lives for ever.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn set(&self, value: Option<&'static T>) {
        self.0.store(value.map_or(ptr::null_mut(), |value| ptr::from_ref(value).cast_mut()), Ordering::Release);
    }
}
