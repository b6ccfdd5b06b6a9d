//! [`Region`]: access to memory that two sides share.
//!
//! A [`Region`] is a fixed number of bytes. The other side may change any of them at any time. So
//! no code gets a reference to plain bytes of it. There are three kinds of access:
//!
//! - page words and header fields are atomics;
//! - [`Region::read_into`] copies bytes out, one relaxed load each. The copy may be torn, and the
//!   caller validates the copy;
//! - the writer that owns a chunk writes through a raw pointer
//!   ([`Memory::base`](crate::Memory::base)).
//!
//! Every offset is checked against the length of the region, which never changes. So an offset that
//! was computed from hostile values can at most panic. The callers in this crate compute offsets
//! only from values that they have validated.

use core::fmt;

use crate::sync::{AtomicU16, AtomicU32};

/// Memory of fixed size, shared with a peer that may write to it.
///
/// # Safety
/// An implementation guarantees that
/// - [`len`](Self::len) never changes;
/// - the memory stays valid as long as the value lives;
/// - the same offset always reaches the same memory.
pub unsafe trait Region: Send + Sync + fmt::Debug {
    /// Returns the size in bytes.
    fn len(&self) -> usize;

    /// Returns true for a region without bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the 32-bit value at `offset`.
    ///
    /// # Panics
    /// If the value is not wholly inside, or `offset` is no multiple of 4.
    fn atomic_u32(&self, offset: usize) -> &AtomicU32;

    /// Returns the 16-bit value at `offset`.
    ///
    /// # Panics
    /// If the value is not wholly inside, or `offset` is odd.
    fn atomic_u16(&self, offset: usize) -> &AtomicU16;

    /// Copies `out.len()` bytes from `offset` on. Of bytes that are written meanwhile, it copies
    /// the old or the new values.
    ///
    /// # Panics
    /// If the bytes are not wholly inside.
    fn read_into(&self, offset: usize, out: &mut [u8]);

    /// Appends a copy of `len` bytes from `offset` on, as [`read_into`](Self::read_into) would make
    /// it.
    ///
    /// # Panics
    /// If the bytes are not wholly inside.
    fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + len, 0);
        self.read_into(offset, &mut out[begin..]);
    }

    /// Returns true if pages of the memory were taken away, so that reads return other bytes than
    /// were written.
    fn is_lost(&self) -> bool {
        false
    }

    /// Returns false if the word at `offset` is 0. A page of the smallest size begins at `offset`.
    ///
    /// Any other access may allocate the page, if it was never written.
    fn is_written(&self, offset: usize) -> bool {
        let _ = offset;
        true
    }

    /// Hints that the words at `offset` will be written soon.
    fn prefetch_for_write(&self, offset: usize) {
        let _ = offset;
    }

    /// Writes `bytes` to `offset`.
    ///
    /// # Safety
    /// The caller owns the chunk that these bytes belong to, in state BeingWritten.
    ///
    /// # Panics
    /// If the bytes do not fit.
    unsafe fn write_from(&self, offset: usize, bytes: &[u8]);
}
