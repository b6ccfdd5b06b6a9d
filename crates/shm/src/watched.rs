//! Memory that somebody watches, for simulations of a peer that writes while it is read.

use core::fmt;
use std::sync::Arc;

use crate::{
    PrivateRegion, Region,
    sync::{AtomicU16, AtomicU32},
};

type Watcher = Box<dyn Fn(&PrivateRegion) + Send + Sync>;

/// A region whose watcher is called before each access, and may change the memory: what a hostile process does between two loads,
/// at a moment of one's choice. Bytes that are copied are accessed one by one as far as the watcher is concerned at the beginning
/// and in the middle.
pub struct WatchedRegion {
    memory: Arc<PrivateRegion>,
    watcher: Watcher,
}

impl WatchedRegion {
    /// Watches memory.
    pub fn new(memory: Arc<PrivateRegion>, watcher: impl Fn(&PrivateRegion) + Send + Sync + 'static) -> Self {
        Self { memory, watcher: Box::new(watcher) }
    }
}

impl fmt::Debug for WatchedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedRegion").field("memory", &self.memory).finish_non_exhaustive()
    }
}

// SAFETY: everything is the memory's own; what the watcher does happens through the same functions.
unsafe impl Region for WatchedRegion {
    fn len(&self) -> usize {
        self.memory.len()
    }

    fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        (self.watcher)(&self.memory);
        self.memory.atomic_u32(offset)
    }

    fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
        (self.watcher)(&self.memory);
        self.memory.atomic_u16(offset)
    }

    fn read_into(&self, offset: usize, out: &mut [u8]) {
        let middle = out.len() / 2;
        (self.watcher)(&self.memory);
        self.memory.read_into(offset, &mut out[..middle]);
        (self.watcher)(&self.memory);
        self.memory.read_into(offset + middle, &mut out[middle..]);
    }

    unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.memory.write_from(offset, bytes) }
    }
}
