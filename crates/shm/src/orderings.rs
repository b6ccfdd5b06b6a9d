//! Memory orderings of `docs/spec/shared-memory.md` §7, named after the accesses that have them.
//!
//! A model proves nothing about an ordering if it passes without it. So under loom any half of any
//! ordering can be removed (`Weakened`). `tests/loom/orderings.rs` lists the result for each half:
//! one named model fails, or none does, because in some places the spec asks for more than the
//! proof needs.

use crate::sync::Ordering;

/// Access whose ordering the spec fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Exchange of a free page's word for a layout.
    Partition,
    /// Exchange of Free for BeingWritten.
    AcquireForWriting,
    /// Store of count and flags when a chunk is acquired, after the stores of its ids.
    StoreHeader,
    /// Store of count and flags while a chunk is being written, after the fragments that it
    /// announces.
    Announce,
    /// Exchange of BeingWritten for Complete.
    Complete,
    /// Exchange of Complete for BeingRead.
    AcquireForReading,
    /// Store of count and flags when a chunk's header is cleared, after the stores of its ids.
    ClearHeader,
    /// Exchange of BeingRead (with emulation: Complete) for Free.
    Free,
    /// Load of a page word by a reader that owns no chunk of the page.
    LoadPageWord,
    /// Load of count and flags, before the ids and the payload.
    LoadPackets,
}

impl Access {
    /// All accesses.
    pub const ALL: [Self; 10] = [
        Self::Partition,
        Self::AcquireForWriting,
        Self::StoreHeader,
        Self::Announce,
        Self::Complete,
        Self::AcquireForReading,
        Self::ClearHeader,
        Self::Free,
        Self::LoadPageWord,
        Self::LoadPackets,
    ];

    /// Returns the ordering that the spec asks for. A failed exchange loads relaxed, because only
    /// another attempt follows.
    pub const fn specified(self) -> Ordering {
        match self {
            Self::Partition | Self::AcquireForWriting | Self::Complete | Self::AcquireForReading | Self::Free => {
                Ordering::AcqRel
            }
            Self::StoreHeader | Self::Announce | Self::ClearHeader => Ordering::Release,
            Self::LoadPageWord | Self::LoadPackets => Ordering::Acquire,
        }
    }

    /// Returns the ordering that this access uses.
    #[cfg(not(esatto_loom))]
    #[inline(always)]
    pub(crate) const fn ordering(self) -> Ordering {
        self.specified()
    }

    #[cfg(esatto_loom)]
    pub(crate) fn ordering(self) -> Ordering {
        match WEAKENED.get() {
            Some((access, half)) if access == self => half.taken_from(self.specified()),
            _ => self.specified(),
        }
    }
}

#[cfg(esatto_loom)]
use weakened::WEAKENED;
#[cfg(esatto_loom)]
pub use weakened::{Half, Weakened};

#[cfg(esatto_loom)]
mod weakened {
    use std::cell::Cell;

    use super::Access;
    use crate::sync::Ordering;

    std::thread_local! {
        /// Thread-local, because loom runs all threads of a model on the thread that checks it.
        pub(super) static WEAKENED: Cell<Option<(Access, Half)>> = const { Cell::new(None) };
    }

    /// Half of an ordering.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Half {
        /// Later accesses are not moved before this one.
        Acquire,
        /// Earlier accesses are not moved after this one.
        Release,
    }

    impl Half {
        /// Returns true if the ordering of this access, as the spec has it, includes this half.
        pub fn is_specified(self, access: Access) -> bool {
            self.taken_from(access.specified()) != access.specified()
        }

        pub(super) fn taken_from(self, ordering: Ordering) -> Ordering {
            match (ordering, self) {
                (Ordering::AcqRel, Self::Acquire) => Ordering::Release,
                (Ordering::AcqRel, Self::Release) => Ordering::Acquire,
                (Ordering::Acquire, Self::Acquire) | (Ordering::Release, Self::Release) => Ordering::Relaxed,
                (other, _) => other,
            }
        }
    }

    /// Guard that removes half of an access's ordering from all models that this thread checks.
    #[derive(Debug)]
    pub struct Weakened(());

    impl Weakened {
        /// Removes this half from the access until the guard is dropped.
        pub fn new(access: Access, half: Half) -> Self {
            WEAKENED.set(Some((access, half)));
            Self(())
        }
    }

    impl Drop for Weakened {
        fn drop(&mut self) {
            WEAKENED.set(None);
        }
    }
}
