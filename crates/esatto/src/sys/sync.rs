//! What [`biased`](super::biased) needs beside what is in [`sync`](crate::sync): a barrier of two halves.
//!
//! A model has no `membarrier`, and fences on both sides in its place would order more than it does: what the owner saw before, too. So there the loads
//! behind the barrier are exchanges that change nothing. As of two that come to the same word one sees the other, so it is behind the real barrier. The
//! stores are exchanges as well, because loom does not order a store among those.

use core::sync::atomic::Ordering;

#[cfg(esatto_loom)]
use crate::order::Rule;
use crate::sync::{AtomicBool, AtomicU8};

/// The owner's half of the barrier, and what it loads behind it.
#[cfg(not(esatto_loom))]
#[inline(always)]
pub(super) fn load_as_owner(flags: &AtomicU8, ordering: Ordering) -> u8 {
    // Keeps the compiler from moving the load before the store. The rest is up to `barrier_everywhere`.
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    flags.load(ordering)
}

/// See above.
#[cfg(esatto_loom)]
pub(super) fn load_as_owner(flags: &AtomicU8, ordering: Ordering) -> u8 {
    if Rule::OwnersBarrier.is_kept() && Rule::SystemsBarrier.is_kept() {
        flags.fetch_or(0, ordering)
    } else {
        flags.load(ordering)
    }
}

/// Says whether the owner is inside.
#[cfg(not(esatto_loom))]
#[inline(always)]
pub(super) fn store_as_owner(busy: &AtomicBool, is_inside: bool, ordering: Ordering) {
    busy.store(is_inside, ordering);
}

/// See above.
#[cfg(esatto_loom)]
pub(super) fn store_as_owner(busy: &AtomicBool, is_inside: bool, ordering: Ordering) {
    busy.swap(is_inside, ordering);
}

/// What another thread loads behind [`barrier_everywhere`].
#[cfg(not(esatto_loom))]
pub(super) fn load_as_other(busy: &AtomicBool, ordering: Ordering) -> bool {
    busy.load(ordering)
}

/// See above.
#[cfg(esatto_loom)]
pub(super) fn load_as_other(busy: &AtomicBool, ordering: Ordering) -> bool {
    if Rule::OthersBarrier.is_kept() && Rule::SystemsBarrier.is_kept() {
        busy.fetch_or(false, ordering)
    } else {
        busy.load(ordering)
    }
}

/// The system has refused a barrier that it had promised.
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether [`barrier_everywhere`] is expected to be one. Asks the system once.
#[cfg(not(esatto_loom))]
pub(super) fn has_barrier() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *HAS.get_or_init(crate::os::kernel::register_barrier) && !IS_LOST.load(Ordering::Relaxed)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}

/// See above.
#[cfg(esatto_loom)]
pub(super) fn has_barrier() -> bool {
    true
}

/// A full barrier on this thread. Returns whether it was one on all other threads of the process
/// that run, which may fail at any time.
#[cfg(not(esatto_loom))]
pub(super) fn barrier_everywhere() -> bool {
    core::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use crate::os::kernel;
        if !has_barrier() {
            return false;
        }
        // Registered before; a child of a fork registers anew.
        let is_made = kernel::barrier() || (kernel::register_barrier() && kernel::barrier());
        if !is_made {
            IS_LOST.store(true, Ordering::Relaxed);
        }
        is_made
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}

/// See above.
#[cfg(esatto_loom)]
pub(super) fn barrier_everywhere() -> bool {
    let is_made = Rule::SystemsBarrier.is_kept();
    if !is_made {
        crate::sync::fence(Ordering::SeqCst);
    }
    is_made
}
