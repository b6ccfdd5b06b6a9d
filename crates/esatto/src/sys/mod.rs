//! State of threads that other threads may take hold of.

#![allow(unsafe_code)]

pub(crate) mod biased;
#[cfg(all(test, any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
#[path = "../../tests/filter/mod.rs"]
mod filter;
mod sync;
pub(crate) mod threads;

/// Asks the system now what [`biased`] will want to know.
pub(crate) fn ask_for_barrier() {
    sync::has_barrier();
}
