//! [`LoomRegion`]: a model of a region over loom's atomics.

use std::sync::Arc;

use super::region::Region;
use crate::sync::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Model of a region with one-chunk or two-chunk pages over loom's atomics.
///
/// Loom's atomics are objects, so each field of the ABI gets one, which is found by its offset.
/// Payload bytes are relaxed atomics, for which loom produces stale values unless an
/// acquire/release pair forbids it. Only the first [`LoomRegion::MODELLED`] payload bytes of a
/// chunk exist. Others read as 0.
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
    /// Number of payload bytes of a chunk that exist.
    pub const MODELLED: usize = 4;

    /// Makes a region of `pages` pages, which are divided only by `layout`.
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
