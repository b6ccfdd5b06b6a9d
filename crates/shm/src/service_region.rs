//! The service's side: copy chunks out of memory that a stranger writes to
//! (`docs/spec/shared-memory.md` §16, §18, §19).
//!
//! Nothing here trusts the region. Page and chunk indices are checked against the region and against
//! *one* load of the page word; bounds are computed from that load alone; each header field is
//! loaded once; payload is copied and only the copy is looked at. What a producer can achieve by changing the memory
//! under our feet is a wrong copy of its own data, or a chunk that is not freed.

use core::fmt;
use std::sync::Arc;

use crate::{
    abi::{CHUNK_HEADER_SIZE, ChunkFlags, ChunkHeader, ChunkState, FRAGMENT_SIZE_LEN, Packets, PageSize, PageWord},
    chunk_states::{Skip, Smb},
    error::{Error, Lost},
    fragments::{SizeField, parse_size},
    memory::Region,
};

/// Longest `data` of an emulated commit that is taken; longer ones are skipped.
pub const MAX_CHUNK_DATA: usize = 65535;

/// What a chunk's header said when it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Page it was found in; for emulated chunks whatever the producer said.
    pub page: u32,
    /// Chunk in that page.
    pub chunk: u32,
    /// The writer; never 0.
    pub writer_id: u16,
    /// Number of the chunk in its writer's sequence; wraps.
    pub chunk_id: u32,
    /// Fragments announced, at most 1023. If not `complete`, the last one must not be trusted.
    pub count: u16,
    /// The flags as found. If not `complete`, only [`ChunkFlags::FIRST_CONTINUES`] means something.
    pub flags: ChunkFlags,
    /// False if its writer had not finished the chunk: it will come again, with more in it.
    pub complete: bool,
}

impl ChunkInfo {
    /// Fragments that are known to be finished.
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

    /// The header as it stood in memory.
    pub fn header(&self) -> ChunkHeader {
        ChunkHeader {
            chunk_id: self.chunk_id,
            writer_id: self.writer_id,
            packets: Packets::new(self.count, self.flags),
        }
    }

    fn new(page: u32, chunk: u32, header: ChunkHeader, complete: bool) -> Self {
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

/// The payload of a chunk that the service holds, in memory that a stranger writes to: to be copied, once, and looked at in the
/// copy.
#[derive(Debug)]
pub struct HeldPayload<'a> {
    region: &'a dyn Region,
    offset: usize,
    len: usize,
}

impl HeldPayload<'_> {
    /// Bytes of the payload, used or not.
    pub fn size_bytes(&self) -> usize {
        self.len
    }

    /// Copies the first `out.len()` bytes.
    ///
    /// # Errors
    /// [`Lost`] if the pages of the memory went away.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost> {
        assert!(out.len() <= self.len, "{} bytes of a payload of {}", out.len(), self.len);
        self.region.read_into(self.offset, out);
        self.check()
    }

    /// Appends a copy of all of it. Allocates only if there is no room left.
    ///
    /// # Errors
    /// [`Lost`] if the pages of the memory went away. As many bytes are appended then, too.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost> {
        self.region.append_to(self.offset, self.len, out);
        self.check()
    }

    fn check(&self) -> Result<(), Lost> {
        if self.region.is_lost() { Err(Lost) } else { Ok(()) }
    }
}

/// A producer's region, as the service may use it.
///
/// Over memory of any kind: what is mapped, or (the other parameters) what a test wants to watch.
#[derive(Clone)]
pub struct ServiceRegion<R = Arc<dyn RegionObject>> {
    smb: Smb<R>,
}

/// What a region has to be to live in a [`ServiceRegion`].
#[cfg(not(esatto_loom))]
use crate::memory::Memory as RegionObject;
#[cfg(esatto_loom)]
use crate::memory::Region as RegionObject;

impl ServiceRegion {
    /// Looks at a region in pages of this size.
    ///
    /// # Errors
    /// [`Error::Size`] if it has no page. Whether the sizes are acceptable otherwise is a matter of
    /// [`crate::size::Geometry`].
    pub fn new(region: Arc<dyn RegionObject>, page_size: PageSize) -> Result<Self, Error> {
        Self::over(region, page_size)
    }
}

impl<R: Region> ServiceRegion<R> {
    /// As [`new`](ServiceRegion::new), over memory of any kind.
    ///
    /// # Errors
    /// As there.
    pub fn over(region: R, page_size: PageSize) -> Result<Self, Error> {
        Ok(Self { smb: Smb::new(region, page_size)? })
    }

    /// The memory.
    pub fn region(&self) -> &R {
        self.smb.region()
    }

    /// Size of the region in bytes.
    pub fn size(&self) -> usize {
        self.smb.region().len()
    }

    /// Size of a page.
    pub fn page_size(&self) -> PageSize {
        self.smb.page_size()
    }

    /// Number of pages.
    pub fn pages(&self) -> u32 {
        self.smb.pages()
    }

    /// Copies the payload of a complete chunk into `out` (replacing what was there) and frees the chunk.
    ///
    /// The numbers are those of the producer's message, unchecked. Allocates only if `out` has
    /// not grown to a chunk's size (at most 64 KiB) yet.
    ///
    /// # Errors
    /// [`Skip`] if there is nothing to take; `out` is then unspecified, and the memory as it was, except for
    /// [`Skip::NoWriter`], where the chunk was freed, and [`Skip::Lost`], where it is gone.
    pub fn take_chunk(&self, page: u32, chunk: u32, out: &mut Vec<u8>) -> Result<ChunkInfo, Skip> {
        take_chunk(&self.smb, page, chunk, out)
    }

    /// Shows a complete chunk to `take`, which may copy its payload, and frees it then.
    ///
    /// The numbers are those of the producer's message, unchecked.
    ///
    /// # Errors
    /// [`Skip`] if there is nothing to take: `take` was not called, and the memory is as it was, except for
    /// [`Skip::NoWriter`], where the chunk was freed.
    pub fn take_chunk_with<T>(
        &self,
        page: u32,
        chunk: u32,
        take: impl FnOnce(&ChunkInfo, HeldPayload<'_>) -> T,
    ) -> Result<T, Skip> {
        take_chunk_with(&self.smb, page, chunk, take)
    }

    /// Says that a chunk of this page will be taken soon, so that its words may come from the other processor's cache
    /// meanwhile. A hint; the number is the producer's, unchecked.
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

    /// Copies chunks that nobody committed yet, and leaves them as they are (§16).
    ///
    /// For each chunk with something in it `wanted` says from the header whether it is of interest
    /// (the writer is registered, its buffer belongs to the session); if so its payload is copied
    /// to `scratch` and shown to `found`. Pages that were never used are not touched, which would
    /// allocate them. Of a chunk that is still being written only the finished fragments are
    /// copied, the rest of the payload reads as zero.
    pub fn scrape(
        &self,
        scratch: &mut Vec<u8>,
        mut wanted: impl FnMut(&ChunkInfo) -> bool,
        mut found: impl FnMut(&ChunkInfo, &[u8]),
    ) {
        scrape(&self.smb, scratch, &mut wanted, &mut found);
    }
}

impl<R: Region> fmt::Debug for ServiceRegion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceRegion").field("size", &self.size()).field("page_size", &self.page_size()).finish()
    }
}

/// [`ServiceRegion::take_chunk`], of any kind of region.
pub(crate) fn take_chunk<R: Region>(smb: &Smb<R>, page: u32, chunk: u32, out: &mut Vec<u8>) -> Result<ChunkInfo, Skip> {
    take_chunk_with(smb, page, chunk, |info, payload| {
        out.clear();
        payload.append_to(out).map(|()| *info).map_err(|Lost| Skip::Lost)
    })?
}

/// [`ServiceRegion::take_chunk_with`], for whatever memory.
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
    // A producer that changed the page meanwhile keeps its chunk as it made it; the copy is as good as any.
    let _ = smb.free(held);
    taken.ok_or(Skip::NoWriter)
}

/// [`ServiceRegion::scrape`], for emulated producers too, which scrape themselves.
pub(crate) fn scrape<R: Region>(
    smb: &Smb<R>,
    scratch: &mut Vec<u8>,
    wanted: &mut dyn FnMut(&ChunkInfo) -> bool,
    found: &mut dyn FnMut(&ChunkInfo, &[u8]),
) {
    for page in 0..smb.pages() {
        if !smb.is_page_used(page) {
            continue;
        }
        let word = smb.page_word(page);
        for index in 0..word.chunks() {
            scrape_chunk(smb, page, index, word, scratch, wanted, found);
        }
    }
}

fn scrape_chunk<R: Region>(
    smb: &Smb<R>,
    page: u32,
    index: usize,
    word: PageWord,
    scratch: &mut Vec<u8>,
    wanted: &mut dyn FnMut(&ChunkInfo) -> bool,
    found: &mut dyn FnMut(&ChunkInfo, &[u8]),
) {
    let Some(chunk) = smb.observe(page, index, word) else { return };
    if chunk.state == ChunkState::Free {
        return;
    }
    let complete = chunk.state == ChunkState::Complete;
    let header = smb.header_at(chunk.offset);
    let info = ChunkInfo::new(page, index as u32, header, complete);
    // With a count of 2 or more the header is known to be initialised and one fragment finished. A complete chunk counts even if
    // there is nothing in it: without it the next one would seem to come after a gap.
    if info.writer_id == 0 || (!complete && info.finished_count() == 0) || !wanted(&info) {
        return;
    }
    scratch.clear();
    scratch.resize(chunk.size - CHUNK_HEADER_SIZE, 0);
    let begin = chunk.offset + CHUNK_HEADER_SIZE;
    let finished =
        if complete { scratch.len() } else { finished_len(smb.region(), begin, scratch.len(), info.finished_count()) };
    smb.region().read_into(begin, &mut scratch[..finished]);
    if !smb.region().is_lost() {
        found(&info, scratch);
    }
}

/// Length of the first `count` fragments in a payload that is still growing: only bytes of finished fragments are looked at.
///
/// A hostile producer can make this any number up to `payload_len`, which harms nobody.
fn finished_len<R: Region>(region: &R, begin: usize, payload_len: usize, count: u16) -> usize {
    let mut at = 0;
    for _ in 0..count {
        let mut size_field = [0; FRAGMENT_SIZE_LEN];
        let mut len = 0;
        let (size, used) = loop {
            if len == size_field.len() || at + len == payload_len {
                return at;
            }
            region.read_into(begin + at + len, &mut size_field[len..=len]);
            len += 1;
            match parse_size(&size_field[..len]) {
                SizeField::Whole { size, used } => break (size as usize, used),
                SizeField::Torn => {}
                SizeField::TooLong => return at,
            }
        };
        if size > payload_len - at - used {
            return at;
        }
        at += used + size;
    }
    at
}
