//! What [`biased`](super::biased) is made of: the real thing, or loom's models of it.

use core::sync::atomic::Ordering;

#[cfg(not(esatto_loom))]
pub(super) use core::sync::atomic::{AtomicBool, AtomicU8, fence};
#[cfg(esatto_loom)]
pub(super) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, fence},
};
#[cfg(not(esatto_loom))]
pub(super) use std::sync::{Mutex, MutexGuard};

/// Locks; a panic of somebody who had the lock does not matter.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The owner's half of the barrier: keeps the compiler from moving the load before the store. The rest is up to
/// [`barrier_everywhere`].
#[cfg(not(esatto_loom))]
#[inline(always)]
pub(super) fn light_fence() {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// A model has no `membarrier`: both sides make the barrier that it makes for both.
#[cfg(esatto_loom)]
pub(super) fn light_fence() {
    fence(Ordering::SeqCst);
}

/// Whether [`barrier_everywhere`] is one. Asks the system once.
pub(super) fn has_barrier() -> bool {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
    {
        static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *HAS.get_or_init(super::kernel::register_barrier)
    }
    #[cfg(not(all(any(target_os = "linux", target_os = "android"), not(esatto_loom))))]
    false
}

/// A full barrier on this thread, and, if [`has_barrier`], on all others of the process that run.
pub(super) fn barrier_everywhere() {
    fence(Ordering::SeqCst);
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
    if has_barrier() {
        use super::kernel;
        // Registered before; a child of a fork registers anew.
        if !kernel::barrier() {
            kernel::register_barrier();
            kernel::barrier();
        }
    }
}
