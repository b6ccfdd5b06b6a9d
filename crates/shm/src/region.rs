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

#[cfg(not(esatto_loom))]
pub use real::{Memory, PrivateRegion};

/// The memory of an arbiter.
#[cfg(not(esatto_loom))]
pub(crate) type SharedMemory = std::sync::Arc<dyn Memory>;
/// The memory of an arbiter.
#[cfg(esatto_loom)]
pub(crate) type SharedMemory = std::sync::Arc<LoomRegion>;

#[cfg(not(esatto_loom))]
mod real {
    use core::{fmt, ptr::NonNull};
    use std::{
        alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
        sync::Arc,
    };

    use super::Region;
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    use crate::sync::{AtomicU8, AtomicUsize, Ordering};
    use crate::{
        abi::PageSize,
        sync::{AtomicU16, AtomicU32},
    };

    /// A region that is real memory: everything but a model.
    ///
    /// # Safety
    /// [`base`](Self::base) always returns the same address, a multiple of 4096, and
    /// [`size`](Self::size) bytes from there on are readable and writable as long as the value lives (for an `Arc`: as
    /// long as a clone lives). No reference to any of them exists, other than to atomics.
    pub unsafe trait Memory: Send + Sync + fmt::Debug {
        /// The first byte.
        fn base(&self) -> NonNull<u8>;

        /// The number of bytes.
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

    /// Address of `len` bytes at `offset`, which is a multiple of `align`.
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

    /// Copies bytes that somebody may write meanwhile, one relaxed load of each.
    ///
    /// # Safety
    /// `from` is the first of `len` readable bytes to which only atomic references exist, `to` of as many writable ones that are
    /// the caller's; they do not overlap.
    ///
    /// Whoever may write the bytes at `from` in this process has handed them over (acquire of the state, or of the count, that
    /// covers them); a store of another process is no data race of ours, and an atomic load is defined in face of it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn copy_racing(from: *const u8, to: *mut u8, len: usize) {
        const STEP: usize = 16;
        let rest = len % STEP;
        let steps = len - rest;
        if steps != 0 {
            // SAFETY: both ends of what is copied in steps are within the caller's bytes. Every byte is loaded once, by an
            // instruction of which the compiler knows nothing: to the machine that is what a relaxed atomic load is. Word
            // by word, as below, takes twice as long for a chunk.
            unsafe {
                core::arch::asm!(
                    "2:",
                    "movups {step}, [{from} + {at}]",
                    "movups [{to} + {at}], {step}",
                    "add {at}, 16",
                    "jnz 2b",
                    from = in(reg) from.add(steps),
                    to = in(reg) to.add(steps),
                    at = inout(reg) (steps as isize).wrapping_neg() => _,
                    step = out(xmm_reg) _,
                    options(nostack),
                );
            }
        }
        if rest != 0 {
            // SAFETY: as above, of the last bytes. The direction flag is clear, as the ABI has it.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rsi") from.add(steps) => _,
                    inout("rdi") to.add(steps) => _,
                    inout("rcx") rest => _,
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    /// See above; for other machines.
    ///
    /// # Safety
    /// As above.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    unsafe fn copy_racing(from: *const u8, to: *mut u8, len: usize) {
        const WORD: usize = size_of::<usize>();
        let byte = |i: usize| {
            // SAFETY: `i` is below `len`, and so many bytes are readable.
            let address = unsafe { from.add(i) };
            // SAFETY: valid, and accessed atomically only: the caller's promise.
            let byte = unsafe { AtomicU8::from_ptr(address.cast_mut()) }.load(Ordering::Relaxed);
            // SAFETY: `i` is below `len`, and so many bytes are the caller's.
            unsafe { to.add(i).write(byte) };
        };
        let head = from.align_offset(WORD).min(len);
        (0..head).for_each(byte);
        let words = (len - head) / WORD;
        for i in 0..words {
            // SAFETY: below `len`.
            let address = unsafe { from.add(head + i * WORD) }.cast_mut().cast();
            // SAFETY: aligned, as `head` bytes lie in front; otherwise as above.
            let word = unsafe { AtomicUsize::from_ptr(address) }.load(Ordering::Relaxed);
            // SAFETY: below `len`.
            let to = unsafe { to.add(head + i * WORD) };
            // SAFETY: so many bytes are the caller's, and alignment is not asked for.
            unsafe { to.cast::<usize>().write_unaligned(word) };
        }
        (head + words * WORD..len).for_each(byte);
    }

    // SAFETY: follows from the contract of `Memory`.
    unsafe impl<M: Memory + ?Sized> Region for M {
        fn len(&self) -> usize {
            self.size()
        }

        #[inline]
        fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
            let address = at(self, offset, 4, 4).cast();
            // SAFETY: in bounds and aligned (the base is page aligned), valid as long as `self`; all other accesses are
            // atomic, except those of a peer, for whom this is ordinary memory anyway.
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
            // SAFETY: so many bytes are in bounds, as long as `self`; `out` cannot lie in memory to which no references
            // exist.
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
            // SAFETY: in bounds; the caller owns these bytes, and `bytes` cannot lie in memory to which no
            // references exist.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
        }
    }

    /// Zeroed heap memory in place of shared memory: for a service in the same process, for
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

        /// Allocates memory with this content.
        ///
        /// # Panics
        /// As [`PrivateRegion::new`].
        pub fn from_bytes(bytes: &[u8]) -> Self {
            let region = Self::new(bytes.len());
            // SAFETY: nobody else knows the memory yet.
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
}

#[cfg(esatto_loom)]
pub use model::LoomRegion;

#[cfg(esatto_loom)]
mod model {
    use std::sync::Arc;

    use super::Region;
    use crate::sync::{AtomicU8, AtomicU16, AtomicU32, Ordering};

    /// A model of a region of one-chunk or two-chunk pages over loom's atomics.
    ///
    /// Loom's atomics are objects of their own, so each field of the ABI gets one, found by its
    /// offset. Payload bytes are relaxed atomics: stale values are exactly what loom will
    /// produce for them unless some acquire/release pair forbids it. Only the first
    /// [`LoomRegion::MODELLED`] payload bytes of a chunk exist; others read as 0.
    #[derive(Debug)]
    pub struct LoomRegion {
        len: usize,
        page_size: usize,
        chunk_size: usize,
        words: Vec<AtomicU32>,
        chunks: Vec<Header>,
    }

    #[derive(Debug)]
    struct Header {
        chunk_id: AtomicU32,
        writer_id: AtomicU16,
        packets: AtomicU16,
        payload: Vec<AtomicU8>,
    }

    impl LoomRegion {
        /// Payload bytes of a chunk that exist.
        pub const MODELLED: usize = 4;

        /// `pages` pages, to be divided by `layout` only.
        pub fn new(pages: usize, page_size: crate::abi::PageSize, layout: crate::abi::PageLayout) -> Self {
            let header = |_| Header {
                chunk_id: AtomicU32::new(0),
                writer_id: AtomicU16::new(0),
                packets: AtomicU16::new(0),
                payload: (0..Self::MODELLED).map(|_| AtomicU8::new(0xee)).collect(),
            };
            Self {
                len: pages * page_size.bytes(),
                page_size: page_size.bytes(),
                chunk_size: layout.chunk_size(page_size),
                words: (0..pages).map(|_| AtomicU32::new(0)).collect(),
                chunks: (0..pages * layout.chunks()).map(header).collect(),
            }
        }

        fn chunk(&self, offset: usize) -> (&Header, usize) {
            let (page, at) = (offset / self.page_size, offset % self.page_size - 8);
            let per_page = self.chunks.len() / self.words.len();
            (&self.chunks[page * per_page + at / self.chunk_size], at % self.chunk_size)
        }
    }

    // SAFETY: all memory is owned, its size fixed.
    unsafe impl Region for LoomRegion {
        fn len(&self) -> usize {
            self.len
        }

        fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
            if offset % self.page_size == 0 {
                return &self.words[offset / self.page_size];
            }
            &self.chunk(offset).0.chunk_id
        }

        fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
            match self.chunk(offset) {
                (chunk, 4) => &chunk.writer_id,
                (chunk, _) => &chunk.packets,
            }
        }

        fn read_into(&self, offset: usize, out: &mut [u8]) {
            let (chunk, at) = self.chunk(offset);
            for (i, to) in out.iter_mut().enumerate() {
                *to = chunk.payload.get(at - 8 + i).map_or(0, |b| b.load(Ordering::Relaxed));
            }
        }

        unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
            let (chunk, at) = self.chunk(offset);
            for (i, byte) in bytes.iter().enumerate() {
                chunk.payload[at - 8 + i].store(*byte, Ordering::Relaxed);
            }
        }
    }

    // SAFETY: the same memory as that of the value in the `Arc`.
    unsafe impl<R: Region + ?Sized> Region for Arc<R> {
        fn len(&self) -> usize {
            (**self).len()
        }

        fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
            (**self).atomic_u32(offset)
        }

        fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
            (**self).atomic_u16(offset)
        }

        fn read_into(&self, offset: usize, out: &mut [u8]) {
            (**self).read_into(offset, out);
        }

        unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
            // SAFETY: the caller's promise.
            unsafe { (**self).write_from(offset, bytes) };
        }
    }
}
