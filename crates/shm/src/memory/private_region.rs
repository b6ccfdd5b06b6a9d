//! [`PrivateRegion`]: heap memory in place of shared memory.

use core::{fmt, ptr::NonNull};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use super::{addressable_memory::Memory, region::Region};
use crate::abi::PageSize;

/// Zeroed heap memory in place of shared memory. It is for a service in the same process, for
/// emulation (`docs/spec/shared-memory.md` §17) and for tests.
pub struct PrivateRegion {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to this value alone, and is accessed as `Memory` demands.
unsafe impl Send for PrivateRegion {}
// SAFETY: as above; all access through `&self` is atomic or the chunk owner's.
unsafe impl Sync for PrivateRegion {}

impl PrivateRegion {
    /// Allocates `len` bytes, all zero: all pages free.
    ///
    /// # Panics
    /// If `len` is 0 or larger than the address space allows.
    pub fn new(len: usize) -> Self {
        assert!(len > 0, "a region has bytes");
        let layout = Layout::from_size_align(len, PageSize::MIN).expect("region too large");
        // SAFETY: the layout's size is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, layout }
    }

    /// Allocates memory and copies these bytes into it.
    ///
    /// # Panics
    /// As [`PrivateRegion::new`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let region = Self::new(bytes.len());
        // SAFETY: no other code knows the memory yet.
        unsafe { region.write_from(0, bytes) };
        region
    }
}

// SAFETY: `new` allocated that many bytes with page alignment; they are freed on drop.
unsafe impl Memory for PrivateRegion {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for PrivateRegion {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for PrivateRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateRegion").field("len", &self.size()).finish_non_exhaustive()
    }
}
