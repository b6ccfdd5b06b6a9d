//! Atomics, locks, statics and thread-locals of this crate: those of the standard library, or
//! loom's models of them under `--cfg esatto_loom`.
//!
//! The module [`orderings`](crate::orderings) says which ordering each access has.

#[cfg(not(esatto_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence};
#[cfg(esatto_loom)]
pub(crate) use loom::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence},
    },
    thread::LocalKey,
};
#[cfg(not(esatto_loom))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard},
    thread::LocalKey,
};

/// Locks a mutex. A panic of a thread that held it does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Declares a static of a type that has no constants in loom, where each run of a model has its
/// own.
#[cfg(not(esatto_loom))]
macro_rules! shared_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $type = $value;
    };
}
#[cfg(esatto_loom)]
macro_rules! shared_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use shared_static;
