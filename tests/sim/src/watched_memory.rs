//! Memory that a hostile producer changes while the service reads it.

use core::fmt;
use std::sync::Arc;

use esatto_shm::sync::{AtomicU16, AtomicU32};
use esatto_shm::{PrivateRegion, Region};

type Watcher = Box<dyn Fn(&PrivateRegion) + Send + Sync>;

/// A region that calls its watcher before each access. The watcher may change the memory, as a
/// hostile process could between two loads. For a copy of many bytes it is called at the beginning
/// and in the middle.
pub(crate) struct WatchedMemory {
    memory: Arc<PrivateRegion>,
    watcher: Watcher,
}

impl WatchedMemory {
    pub(crate) fn new(memory: Arc<PrivateRegion>, watcher: impl Fn(&PrivateRegion) + Send + Sync + 'static) -> Self {
        Self { memory, watcher: Box::new(watcher) }
    }
}

impl fmt::Debug for WatchedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedMemory").field("memory", &self.memory).finish_non_exhaustive()
    }
}

// SAFETY: the memory is that of the region inside, which lives as long and never moves. The watcher
// accesses it through the same functions.
unsafe impl Region for WatchedMemory {
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
