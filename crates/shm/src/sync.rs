//! Atomic types and locks of this crate: those of the standard library, or loom's under `--cfg
//! esatto_loom`. No other module names one.
//!
//! Loom's atomics are wider than real ones. So under loom only the model region (`LoomRegion`)
//! exists. Mapped and heap memory are compiled out, and the writer is a smaller one.

#[cfg(not(esatto_loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

#[cfg(not(esatto_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(esatto_loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};
#[cfg(esatto_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
