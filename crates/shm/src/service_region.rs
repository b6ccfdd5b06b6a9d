//! [`ServiceRegion`]: the service's side, which copies chunks out of memory that a stranger writes
//! to (`docs/spec/shared-memory.md` §18, §19).
//!
//! Nothing here trusts the region. Page and chunk indices are checked against the region and
//! against *one* load of the page word. Bounds are computed from that load alone. Each header field
//! is loaded once. Payload is copied, and only the copy is read. If a producer changes the memory
//! meanwhile, the result is a wrong copy of its own data, or a chunk that is not freed.

use core::fmt;
use std::sync::Arc;

use crate::{
    abi::{CHUNK_HEADER_SIZE, ChunkFlags, ChunkHeader, Packets, PageSize},
    chunk_states::{Skip, Smb},
    error::{Error, Lost},
    memory::Region,
};

/// Largest `data` of an emulated commit that is accepted. Longer data are skipped.
pub const MAX_CHUNK_DATA: usize = 65535;

/// Content of a chunk's header when it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Page of the chunk. For emulated chunks, the number that the producer sent.
    pub page: u32,
    /// Index of the chunk in that page.
    pub chunk: u32,
    /// Id of the writer; never 0.
    pub writer_id: u16,
    /// Number of the chunk in its writer's sequence. It wraps.
    pub chunk_id: u32,
    /// Number of fragments announced, at most 1023. If not `complete`, the last one must not be
    /// trusted.
    pub count: u16,
    /// Flags of the chunk. If not `complete`, only [`ChunkFlags::FIRST_CONTINUES`] has a meaning.
    pub flags: ChunkFlags,
    /// False if its writer had not finished the chunk. The chunk will be read again, with more
    /// content.
    pub complete: bool,
}

impl ChunkInfo {
    /// Returns the number of fragments that are known to be finished.
    pub fn finished_count(&self) -> u16 {
        if self.complete { self.count } else { self.count.saturating_sub(1) }
    }

    /// Splits the `data` of an emulated commit (§17) into header and payload.
    ///
    /// # Errors
    /// [`Skip::DataSize`] outside 8 ..= 65535 bytes, [`Skip::NoWriter`] for writer 0.
    pub fn from_data(page: u32, chunk: u32, data: &[u8], complete: bool) -> Result<(Self, &[u8]), Skip> {
        match data.split_first_chunk::<CHUNK_HEADER_SIZE>() {
            Some((header, payload)) if data.len() <= MAX_CHUNK_DATA => {
                let header = ChunkHeader::from_bytes(*header);
                if header.writer_id == 0 {
                    return Err(Skip::NoWriter);
                }
                Ok((Self::new(page, chunk, header, complete), payload))
            }
            _ => Err(Skip::DataSize { len: data.len() }),
        }
    }

    /// Returns the header as it was in memory.
    pub fn header(&self) -> ChunkHeader {
        ChunkHeader {
            chunk_id: self.chunk_id,
            writer_id: self.writer_id,
            packets: Packets::new(self.count, self.flags),
        }
    }

    pub(crate) fn new(page: u32, chunk: u32, header: ChunkHeader, complete: bool) -> Self {
        Self {
            page,
            chunk,
            writer_id: header.writer_id,
            chunk_id: header.chunk_id,
            count: header.packets.count(),
            flags: header.packets.flags(),
            complete,
        }
    }
}

/// Payload of a chunk that the service holds, in memory that a stranger writes to. The caller
/// copies it once, and reads only the copy.
#[derive(Debug)]
pub struct HeldPayload<'a> {
    region: &'a dyn Region,
    offset: usize,
    len: usize,
}

impl HeldPayload<'_> {
    /// Returns the size of the payload in bytes, used or not.
    pub fn size_bytes(&self) -> usize {
        self.len
    }

    /// Copies the first `out.len()` bytes.
    ///
    /// # Errors
    /// [`Lost`] if the pages of the memory were taken away.
    ///
    /// # Panics
    /// If the payload has fewer bytes.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost> {
        assert!(out.len() <= self.len, "{} bytes of a payload of {}", out.len(), self.len);
        self.region.read_into(self.offset, out);
        self.check()
    }

    /// Appends a copy of the payload. Allocates only if there is no room left.
    ///
    /// # Errors
    /// [`Lost`] if the pages of the memory were taken away. As many bytes are appended in that
    /// case.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost> {
        self.region.append_to(self.offset, self.len, out);
        self.check()
    }

    fn check(&self) -> Result<(), Lost> {
        if self.region.is_lost() { Err(Lost) } else { Ok(()) }
    }
}

/// Region of a producer, for the service.
///
/// The memory is mapped. Tests use other parameters for memory that they watch.
#[derive(Clone)]
pub struct ServiceRegion<R = Arc<dyn RegionObject>> {
    pub(crate) smb: Smb<R>,
}

/// Trait of the regions in a [`ServiceRegion`].
#[cfg(not(esatto_loom))]
use crate::memory::Memory as RegionObject;
#[cfg(esatto_loom)]
use crate::memory::Region as RegionObject;

impl ServiceRegion {
    /// Makes a view of a region with pages of this size.
    ///
    /// # Errors
    /// [`Error::Size`] if it has no page. [`crate::size::Geometry`] decides which sizes a service
    /// accepts.
    pub fn new(region: Arc<dyn RegionObject>, page_size: PageSize) -> Result<Self, Error> {
        Self::over(region, page_size)
    }
}

impl<R: Region> ServiceRegion<R> {
    /// As [`new`](ServiceRegion::new), for memory of any kind.
    ///
    /// # Errors
    /// As [`new`](ServiceRegion::new).
    pub fn over(region: R, page_size: PageSize) -> Result<Self, Error> {
        Ok(Self { smb: Smb::new(region, page_size)? })
    }

    /// Returns the memory.
    pub fn region(&self) -> &R {
        self.smb.region()
    }

    /// Returns the size of the region in bytes.
    pub fn size(&self) -> usize {
        self.smb.region().len()
    }

    /// Returns the size of a page.
    pub fn page_size(&self) -> PageSize {
        self.smb.page_size()
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.smb.pages()
    }

    /// Copies the payload of a complete chunk into `out`, replacing its content, and frees the
    /// chunk.
    ///
    /// The numbers are those of the producer's message, unchecked. Allocates only if `out` has
    /// not grown to a chunk's size (at most 64 KiB) yet.
    ///
    /// # Errors
    /// [`Skip`] if there is nothing to take. `out` is unspecified then. The memory is unchanged,
    /// except for [`Skip::NoWriter`], where the chunk was freed, and [`Skip::Lost`], where the
    /// memory is gone.
    pub fn take_chunk(&self, page: u32, chunk: u32, out: &mut Vec<u8>) -> Result<ChunkInfo, Skip> {
        take_chunk(&self.smb, page, chunk, out)
    }

    /// Passes a complete chunk to `take`, which may copy its payload, and then frees the chunk.
    ///
    /// The numbers are those of the producer's message, unchecked.
    ///
    /// # Errors
    /// [`Skip`] if there is nothing to take. `take` was not called, and the memory is unchanged,
    /// except for [`Skip::NoWriter`], where the chunk was freed.
    pub fn take_chunk_with<T>(
        &self,
        page: u32,
        chunk: u32,
        take: impl FnOnce(&ChunkInfo, HeldPayload<'_>) -> T,
    ) -> Result<T, Skip> {
        take_chunk_with(&self.smb, page, chunk, take)
    }

    /// Hints that a chunk of this page will be taken soon, so that its words can be fetched from
    /// the other processor's cache meanwhile. The number is the producer's, unchecked.
    pub fn expect_chunk(&self, page: u32) {
        if page < self.smb.pages() {
            self.smb.region().prefetch_for_write(page as usize * self.smb.page_size().bytes());
        }
    }

    /// Frees a complete chunk without copying it.
    ///
    /// # Errors
    /// [`Skip`] if there is no such chunk, or the producer changed the page meanwhile.
    pub fn discard_chunk(&self, page: u32, chunk: u32) -> Result<(), Skip> {
        let held = self.smb.acquire_for_reading(page, chunk)?;
        self.smb.free(held)
    }
}

impl<R: Region> fmt::Debug for ServiceRegion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceRegion").field("size", &self.size()).field("page_size", &self.page_size()).finish()
    }
}

/// [`ServiceRegion::take_chunk`], for any region.
pub(crate) fn take_chunk<R: Region>(smb: &Smb<R>, page: u32, chunk: u32, out: &mut Vec<u8>) -> Result<ChunkInfo, Skip> {
    take_chunk_with(smb, page, chunk, |info, payload| {
        out.clear();
        payload.append_to(out).map(|()| *info).map_err(|Lost| Skip::Lost)
    })?
}

/// [`ServiceRegion::take_chunk_with`], for any region.
fn take_chunk_with<R: Region, T>(
    smb: &Smb<R>,
    page: u32,
    chunk: u32,
    take: impl FnOnce(&ChunkInfo, HeldPayload<'_>) -> T,
) -> Result<T, Skip> {
    let held = smb.acquire_for_reading(page, chunk)?;
    let header = smb.header(&held);
    let taken = (header.writer_id != 0).then(|| {
        let payload = HeldPayload { region: smb.region(), offset: held.payload_offset(), len: held.payload_size() };
        take(&ChunkInfo::new(page, chunk, header, true), payload)
    });
    // If the producer changed the page meanwhile, the chunk stays as the producer made it. The copy
    // is used anyway.
    let _ = smb.free(held);
    taken.ok_or(Skip::NoWriter)
}
