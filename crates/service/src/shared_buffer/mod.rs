//! The service's view of a producer's shared memory: it copies chunks out, and keeps no pointers
//! into it.

mod shm_region;

use core::fmt;

use esatto_shm::Lost;

/// The service's view of one producer's shared memory buffer.
///
/// Every function copies. None returns references into memory that the producer can write
/// (`docs/spec/shared-memory.md §18`).
pub trait SharedBuffer: fmt::Debug + Send {
    /// Returns the bytes of the whole region.
    fn size_bytes(&self) -> usize;

    /// Returns the bytes of a page.
    fn page_size_bytes(&self) -> usize;

    /// Takes a complete chunk: acquires it, copies header and payload, and frees it. Overwrites
    /// `payload` with the chunk without its 8-byte header. Returns `None` if there is no such page
    /// or chunk, or if its state is not "complete".
    fn take_chunk(&mut self, page: u32, chunk: u32, payload: &mut Vec<u8>) -> Option<ChunkHeader>;

    /// Takes a complete chunk like [`take_chunk`](Self::take_chunk), but shows the payload in
    /// place, so that the caller copies it to its destination.
    ///
    /// Calls `take` at most once, before it frees the chunk. Returns false if there was no chunk to
    /// take. By default the payload is a copy.
    fn take_chunk_with(&mut self, page: u32, chunk: u32, take: &mut dyn FnMut(ChunkHeader, &dyn Payload)) -> bool {
        let mut payload = Vec::new();
        let header = self.take_chunk(page, chunk, &mut payload);
        if let Some(header) = header {
            take(header, &payload.as_slice());
        }
        header.is_some()
    }

    /// Hints that the service will soon take a chunk of this page. The page may not exist.
    fn expect_chunk(&self, page: u32) {
        let _ = page;
    }

    /// Shows every complete chunk, and every chunk that is being written and has at least two
    /// packets. Leaves the chunks untouched (`docs/spec/shared-memory.md §16`). `payload` is
    /// scratch space.
    fn scrape(&mut self, payload: &mut Vec<u8>, each: &mut dyn FnMut(ScrapedChunk<'_>));
}

/// The payload of a chunk, possibly in memory that a stranger writes to. The service copies it at
/// most once, and looks only at the copy.
pub trait Payload {
    /// Returns the bytes of the payload, used or not.
    fn size_bytes(&self) -> usize;

    /// Copies all of it to the start of `out`, which is long enough.
    ///
    /// # Errors
    ///
    /// [`Lost`]: the copied bytes are invalid.
    fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost>;

    /// Appends a copy of all of it.
    ///
    /// # Errors
    ///
    /// [`Lost`]: the appended bytes are invalid.
    fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost>;
}

impl Payload for &[u8] {
    fn size_bytes(&self) -> usize {
        self.len()
    }

    fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost> {
        out[..self.len()].copy_from_slice(self);
        Ok(())
    }

    fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost> {
        out.extend_from_slice(self);
        Ok(())
    }
}

/// Header of a chunk as it was loaded, unchecked (`docs/spec/shared-memory.md §5`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The writer; 0 is invalid.
    pub writer_id: u16,
    /// Number of the chunk in its sequence. It wraps.
    pub chunk_id: u32,
    /// How many fragments it claims to have.
    pub count: u16,
    /// The three flag bits: 1 first fragment continues, 2 last fragment continues, 4 needs
    /// patching.
    pub flags: u8,
}

/// A chunk that was not committed yet.
#[derive(Clone, Copy, Debug)]
pub struct ScrapedChunk<'a> {
    /// Its header.
    pub header: ChunkHeader,
    /// It is complete, its commit is under way; else it is still being written.
    pub complete: bool,
    /// The chunk without its header.
    pub payload: &'a [u8],
}

/// Bytes of a region and of a page that the service grants for a wish (0 = no wish);
/// `docs/spec/service.md §2`.
///
/// A pair that cannot be had becomes the default pair. Memory that a producer brought along is only
/// adopted when this function returns exactly its sizes.
pub fn granted_sizes(size_bytes: usize, page_size_bytes: usize) -> (usize, usize) {
    let granted = esatto_shm::size::Geometry::negotiate(size_bytes, page_size_bytes);
    (granted.size, granted.page_size.bytes())
}
