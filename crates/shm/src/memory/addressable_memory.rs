//! [`Memory`]: regions that are real memory, which has an address.

use core::{fmt, ptr::NonNull};
use std::sync::Arc;

use super::{racing_copy::copy_racing, region::Region};
use crate::sync::{AtomicU16, AtomicU32};

/// Region that is real memory, in contrast to a model.
///
/// # Safety
/// [`base`](Self::base) always returns the same address, a multiple of 4096, and
/// [`size`](Self::size) bytes from there on are readable and writable as long as the value lives
/// (for an `Arc`: as long as a clone lives). No reference to any of them exists, other than to
/// atomics.
pub unsafe trait Memory: Send + Sync + fmt::Debug {
    /// Returns the address of the first byte.
    fn base(&self) -> NonNull<u8>;

    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// See [`Region::is_lost`].
    fn has_lost_pages(&self) -> bool {
        false
    }

    /// See [`Region::is_written`].
    fn has_page(&self, offset: usize) -> bool {
        let _ = offset;
        true
    }
}

// SAFETY: the same memory as that of the value in the `Arc`, which lives as long as the `Arc`.
unsafe impl<M: Memory + ?Sized> Memory for Arc<M> {
    fn base(&self) -> NonNull<u8> {
        (**self).base()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn has_lost_pages(&self) -> bool {
        (**self).has_lost_pages()
    }

    fn has_page(&self, offset: usize) -> bool {
        (**self).has_page(offset)
    }
}

/// Returns the address of `len` bytes at `offset`, which is a multiple of `align`.
#[inline]
#[track_caller]
fn at<M: Memory + ?Sized>(memory: &M, offset: usize, len: usize, align: usize) -> *mut u8 {
    let size = memory.size();
    assert!(
        offset % align == 0 && offset <= size && len <= size - offset,
        "{len} bytes at {offset} are not in a region of {size}"
    );
    // SAFETY: `offset` is at most `size`, and `size` bytes from the base on are one allocation.
    unsafe { memory.base().as_ptr().add(offset) }
}

// SAFETY: follows from the contract of `Memory`.
unsafe impl<M: Memory + ?Sized> Region for M {
    fn len(&self) -> usize {
        self.size()
    }

    #[inline]
    fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        let address = at(self, offset, 4, 4).cast();
        // SAFETY: in bounds and aligned (the base is page aligned), valid as long as `self`; all
        // other accesses are atomic, except those of a peer in another process.
        unsafe { AtomicU32::from_ptr(address) }
    }

    #[inline]
    fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
        let address = at(self, offset, 2, 2).cast();
        // SAFETY: as in `atomic_u32`.
        unsafe { AtomicU16::from_ptr(address) }
    }

    fn read_into(&self, offset: usize, out: &mut [u8]) {
        let begin = at(self, offset, out.len(), 1);
        // SAFETY: so many bytes are in bounds, as long as `self`; `out` is a reference, so it is
        // not in this memory, to which no references exist.
        unsafe { copy_racing(begin, out.as_mut_ptr(), out.len()) };
    }

    fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let begin = at(self, offset, len, 1);
        out.reserve(len);
        let spare = &mut out.spare_capacity_mut()[..len];
        // SAFETY: as in `read_into`.
        unsafe { copy_racing(begin, spare.as_mut_ptr().cast(), len) };
        let len = out.len() + len;
        // SAFETY: reserved above, and the bytes up to there are written now.
        unsafe { out.set_len(len) };
    }

    fn is_lost(&self) -> bool {
        self.has_lost_pages()
    }

    fn is_written(&self, offset: usize) -> bool {
        self.has_page(offset)
    }

    #[inline]
    fn prefetch_for_write(&self, offset: usize) {
        crate::prefetch::prefetch_for_write(self.base().as_ptr().wrapping_add(offset));
    }

    unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
        let address = at(self, offset, bytes.len(), 1);
        // SAFETY: in bounds; the caller owns these bytes, and `bytes` is a reference, so it is not
        // in this memory, to which no references exist.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
    }
}
