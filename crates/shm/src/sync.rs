//! The only place that names an atomic type: core's, or loom's under `--cfg esatto_loom`.
//!
//! Loom's atomics are wider than real ones, so under loom only the model region (`LoomRegion`) exists;
//! mapped and heap memory, and the writer over them, are compiled out.

#[cfg(not(esatto_loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

#[cfg(esatto_loom)]
pub use loom::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
