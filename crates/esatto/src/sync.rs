//! What those parts of the crate are made of that loom checks (`crates/shm/tests/loom_sdk`): the real thing, or loom's models of it.
//!
//! They are [`instance`](crate::instance)'s tables and words, the state of [threads](crate::thread) and who may get at it
//! ([`sys`](crate::sys)). Which ordering each of their accesses has is said in [`order`](crate::order).

#[cfg(not(esatto_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence};
#[cfg(esatto_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, fence},
};
#[cfg(not(esatto_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks; a panic of somebody who had the lock does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A static of a type that has no constants in loom, where it is another one in each run of a model.
#[cfg(not(esatto_loom))]
macro_rules! shared {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $type = $value;
    };
}
#[cfg(esatto_loom)]
macro_rules! shared {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use shared;

/// A thread-local whose first value is a constant.
#[cfg(not(esatto_loom))]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        thread_local! {
            $(#[$meta])*
            static $name: $type = const { $value };
        }
    };
}
#[cfg(esatto_loom)]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::thread_local! {
            $(#[$meta])*
            static $name: $type = $value;
        }
    };
}
pub(crate) use local;
