//! What the compiler cannot check: state of threads that other threads may take hold of, and the processor's counter.
//!
//! The only module of the crate with `unsafe` in it.

#![allow(unsafe_code)]

pub(crate) mod biased;
pub(crate) mod counter;
#[cfg(feature = "in-process")]
pub(crate) mod exit;
mod sync;
pub(crate) mod threads;
