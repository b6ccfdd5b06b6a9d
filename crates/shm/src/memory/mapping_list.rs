//! List of the mappings of this process, for code that cannot get a reference: children of a fork,
//! and signal handlers.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

/// Largest number of mappings in the list: two for each of the 8192 connections of a service.
/// Further mappings work, but stay shared in children of a fork, and a fault in them ends the
/// process.
pub(crate) const MAX_MAPPINGS: usize = 16384;

/// Mapping of this process.
pub(crate) struct Mapping {
    /// Address of its first byte; 0 if there is no mapping. Set last and cleared first.
    base: AtomicUsize,
    size: AtomicUsize,
    fd: AtomicI32,
    /// Its pages were taken away, and zeroed pages have replaced them.
    lost: AtomicBool,
}

/// All zero, so that it takes no space in programs, and no memory before its first use.
static MAPPINGS: [Mapping; MAX_MAPPINGS] = [const { Mapping::none() }; MAX_MAPPINGS];

/// Index of the first place that was never used.
static END: AtomicUsize = AtomicUsize::new(0);

/// Address while the place is being filled in.
const TAKEN: usize = usize::MAX;

impl Mapping {
    const fn none() -> Self {
        Self {
            base: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            fd: AtomicI32::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// Adds a mapping to the list, until [`remove`](Self::remove) is called.
    pub(crate) fn add(base: NonNull<u8>, size: usize, file: &File) -> Option<&'static Self> {
        let is_free = |mapping: &Self| {
            mapping.base.load(Ordering::Relaxed) == 0
                && mapping.base.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let (index, mapping) = MAPPINGS.iter().enumerate().find(|(_, mapping)| is_free(mapping))?;
        END.fetch_max(index + 1, Ordering::Relaxed);
        mapping.size.store(size, Ordering::Relaxed);
        mapping.fd.store(file.as_raw_fd(), Ordering::Relaxed);
        mapping.lost.store(false, Ordering::Relaxed);
        mapping.base.store(base.as_ptr().expose_provenance(), Ordering::Release);
        Some(mapping)
    }

    /// Removes the mapping from the list. Call this before unmapping it.
    pub(crate) fn remove(&self) {
        self.base.store(0, Ordering::Release);
    }

    /// Returns true if its pages were taken away.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns its first byte and its size, if there is a mapping.
    fn place(&self) -> Option<(NonNull<u8>, usize)> {
        let base = self.base.load(Ordering::Acquire);
        let base = NonNull::new(ptr::with_exposed_provenance_mut(base)).filter(|_| base != TAKEN)?;
        Some((base, self.size.load(Ordering::Relaxed)))
    }
}

fn listed() -> &'static [Mapping] {
    &MAPPINGS[..END.load(Ordering::Relaxed).min(MAX_MAPPINGS)]
}

/// Iterates over all mappings: first byte, size, file.
pub(crate) fn all() -> impl Iterator<Item = (NonNull<u8>, usize, RawFd)> {
    listed().iter().filter_map(|mapping| {
        let (base, size) = mapping.place()?;
        Some((base, size, mapping.fd.load(Ordering::Relaxed)))
    })
}

/// Marks the mapping in which an address lies as lost. Returns its first byte and its size.
#[cfg(feature = "faults")]
pub(crate) fn lose(address: usize) -> Option<(NonNull<u8>, usize)> {
    listed().iter().find_map(|mapping| {
        let (base, size) = mapping.place()?;
        let is_inside = address.checked_sub(base.as_ptr().addr()).is_some_and(|offset| offset < size);
        if is_inside {
            mapping.lost.store(true, Ordering::Release);
        }
        is_inside.then_some((base, size))
    })
}
