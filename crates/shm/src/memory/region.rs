//! Memory that two sides share: how it is reached, not what is in it.
//!
//! A [`Region`] is a fixed number of bytes, of which the other side may change any at any time. So
//! nobody gets a reference to plain bytes of it. There are three ways in:
//!
//! - page words and header fields are atomics;
//! - [`Region::read_into`] copies bytes out, one relaxed load each: what comes out is whatever was there, possibly
//!   torn, and is validated as the copy it is;
//! - the writer that owns a chunk writes through a raw pointer ([`Memory::base`]).
//!
//! Every offset is checked against the length of the region, which never changes, so an offset that
//! was computed from hostile values can at most panic, and the callers in this crate only
//! compute offsets from values that they validated.

use core::fmt;

use crate::sync::{AtomicU16, AtomicU32};

/// A piece of memory of fixed size, shared with somebody who may write to it.
///
/// # Safety
/// An implementation guarantees that
/// - [`len`](Self::len) never changes;
/// - the memory stays valid as long as the value lives;
/// - the same offset always reaches the same memory.
pub unsafe trait Region: Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn len(&self) -> usize;

    /// True for a region without bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The 32-bit value at `offset`.
    ///
    /// # Panics
    /// If it is not wholly inside, or `offset` is no multiple of 4.
    fn atomic_u32(&self, offset: usize) -> &AtomicU32;

    /// The 16-bit value at `offset`.
    ///
    /// # Panics
    /// If it is not wholly inside, or `offset` is odd.
    fn atomic_u16(&self, offset: usize) -> &AtomicU16;

    /// Copies `out.len()` bytes from `offset` on. Bytes that are written meanwhile come out old or new.
    ///
    /// # Panics
    /// If they are not wholly inside.
    fn read_into(&self, offset: usize, out: &mut [u8]);

    /// Appends a copy of `len` bytes from `offset` on, as [`read_into`](Self::read_into) would make it.
    ///
    /// # Panics
    /// If they are not wholly inside.
    fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + len, 0);
        self.read_into(offset, &mut out[begin..]);
    }

    /// Whether the pages of the memory went away, and what is read is not what was written.
    fn is_lost(&self) -> bool {
        false
    }

    /// Whether the word at `offset`, which begins a page of the smallest size, can be anything but
    /// 0.
    ///
    /// Looking at it by any other function may allocate the page, if nobody ever wrote to it.
    fn is_written(&self, offset: usize) -> bool {
        let _ = offset;
        true
    }

    /// Says that the words at `offset` will be written soon. A hint.
    fn prefetch_for_write(&self, offset: usize) {
        let _ = offset;
    }

    /// Writes `bytes` to `offset`.
    ///
    /// # Safety
    /// The caller owns the chunk that these bytes belong to, in state BeingWritten.
    ///
    /// # Panics
    /// If they do not fit.
    unsafe fn write_from(&self, offset: usize, bytes: &[u8]);
}
