//! The memory orderings of `docs/spec/shared-memory.md` §7, each under the name of the access that has it.
//!
//! A model that passes proves nothing if it would pass without the ordering too. So under loom any half of any of them can be
//! taken away (`Weakened`), and `tests/loom/orderings.rs` holds for each half what then becomes of the models: one named
//! model fails, or none, for here and there the spec asks for more than the proof needs.

use crate::sync::Ordering;

/// An access whose ordering the spec fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The exchange of a free page's word for a layout.
    Partition,
    /// The exchange of Free for BeingWritten.
    AcquireForWriting,
    /// The store of count and flags when a chunk is acquired, behind those of its ids.
    StoreHeader,
    /// The store of count and flags while a chunk is being written, behind the fragments it announces.
    Announce,
    /// The exchange of BeingWritten for Complete.
    Complete,
    /// The exchange of Complete for BeingRead.
    AcquireForReading,
    /// The store of count and flags when a chunk's header is cleared, behind those of its ids.
    ClearHeader,
    /// The exchange of BeingRead (with emulation: Complete) for Free.
    Free,
    /// The load of a page word by a reader that owns no chunk of it.
    LoadPageWord,
    /// The load of count and flags, before the ids and the payload.
    LoadPackets,
}

impl Access {
    /// All of them.
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

    /// What the spec asks for. The exchanges load relaxed where they fail: then nothing follows but another try.
    pub const fn specified(self) -> Ordering {
        match self {
            Self::Partition | Self::AcquireForWriting | Self::Complete | Self::AcquireForReading | Self::Free => {
                Ordering::AcqRel
            }
            Self::StoreHeader | Self::Announce | Self::ClearHeader => Ordering::Release,
            Self::LoadPageWord | Self::LoadPackets => Ordering::Acquire,
        }
    }

    /// What this access uses.
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
        /// Loom runs all threads of a model on the thread that checks it.
        pub(super) static WEAKENED: Cell<Option<(Access, Half)>> = const { Cell::new(None) };
    }

    /// One of the two promises of an ordering.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Half {
        /// What comes later is not done earlier.
        Acquire,
        /// What came earlier is done.
        Release,
    }

    impl Half {
        /// Whether the spec gives it to an access.
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

    /// While it lives, an access lacks half of its ordering in all models checked by this thread.
    #[derive(Debug)]
    pub struct Weakened(());

    impl Weakened {
        /// Takes it away.
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
