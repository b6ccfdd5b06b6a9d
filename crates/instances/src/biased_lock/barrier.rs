//! Barrier of two halves between the owner of a [`BiasedLock`](super::BiasedLock) and other
//! threads.
//!
//! A model has no `membarrier`. Fences on both sides in its place would order too much: also the
//! owner's earlier reads. So in models the loads after the barrier are exchanges that change
//! nothing. Of two exchanges of one word, one sees the other, as with the real barrier. The stores
//! are also exchanges, because loom does not order a store among exchanges.

use core::sync::atomic::Ordering;

#[cfg(esatto_loom)]
use crate::orderings::Rule;
use crate::sync::{AtomicBool, AtomicU8};

/// Makes the owner's half of the barrier, and then loads the flags.
#[cfg(not(esatto_loom))]
#[inline(always)]
pub(super) fn load_as_owner(flags: &AtomicU8, ordering: Ordering) -> u8 {
    // Keeps the compiler from moving the load before the store. `barrier_everywhere` does the rest.
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    flags.load(ordering)
}

#[cfg(esatto_loom)]
pub(super) fn load_as_owner(flags: &AtomicU8, ordering: Ordering) -> u8 {
    if Rule::OwnersBarrier.is_kept() && Rule::SystemsBarrier.is_kept() {
        flags.fetch_or(0, ordering)
    } else {
        flags.load(ordering)
    }
}

/// Stores whether the owner is inside.
#[cfg(not(esatto_loom))]
#[inline(always)]
pub(super) fn store_as_owner(busy: &AtomicBool, is_inside: bool, ordering: Ordering) {
    busy.store(is_inside, ordering);
}

#[cfg(esatto_loom)]
pub(super) fn store_as_owner(busy: &AtomicBool, is_inside: bool, ordering: Ordering) {
    busy.swap(is_inside, ordering);
}

/// Loads whether the owner is inside, as another thread, after [`barrier_everywhere`].
#[cfg(not(esatto_loom))]
pub(super) fn load_as_other(busy: &AtomicBool, ordering: Ordering) -> bool {
    busy.load(ordering)
}

#[cfg(esatto_loom)]
pub(super) fn load_as_other(busy: &AtomicBool, ordering: Ordering) -> bool {
    if Rule::OthersBarrier.is_kept() && Rule::SystemsBarrier.is_kept() {
        busy.fetch_or(false, ordering)
    } else {
        busy.load(ordering)
    }
}

/// True after the system has refused a barrier that it had promised.
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Returns whether [`barrier_everywhere`] is expected to succeed. The first call asks the system.
#[cfg(not(esatto_loom))]
pub(super) fn has_barrier() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *HAS.get_or_init(crate::membarrier::register) && !IS_LOST.load(Ordering::Relaxed)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}

#[cfg(esatto_loom)]
pub(super) fn has_barrier() -> bool {
    true
}

/// Makes a full barrier on this thread. Returns whether all other running threads of the process
/// also made one; the system may refuse that at any time.
#[cfg(not(esatto_loom))]
pub(super) fn barrier_everywhere() -> bool {
    core::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use crate::membarrier;
        if !has_barrier() {
            return false;
        }
        // The process is registered, but the child of a fork has to register again.
        let is_made = membarrier::make_barrier() || (membarrier::register() && membarrier::make_barrier());
        if !is_made {
            IS_LOST.store(true, Ordering::Relaxed);
        }
        is_made
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}

#[cfg(esatto_loom)]
pub(super) fn barrier_everywhere() -> bool {
    let is_made = Rule::SystemsBarrier.is_kept();
    if !is_made {
        crate::sync::fence(Ordering::SeqCst);
    }
    is_made
}
