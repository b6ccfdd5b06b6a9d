//! `esatto_shm`'s view of a region, as the service wants it.

use esatto_shm::{ChunkInfo, HeldPayload, Lost, Region, ServiceRegion, Skip};

use crate::shared_buffer::{ChunkHeader, Payload, ScrapedChunk, SharedBuffer};

impl<R: Region + 'static> SharedBuffer for ServiceRegion<R> {
    fn size_bytes(&self) -> usize {
        self.size()
    }

    fn page_size_bytes(&self) -> usize {
        self.page_size().bytes()
    }

    fn take_chunk(&mut self, page: u32, chunk: u32, payload: &mut Vec<u8>) -> Option<ChunkHeader> {
        match Self::take_chunk(self, page, chunk, payload) {
            Ok(info) => Some(header(&info)),
            // The caller looks at the writer id, and counts the chunk as discarded.
            Err(Skip::NoWriter) => Some(ChunkHeader::default()),
            Err(_) => None,
        }
    }

    fn take_chunk_with(&mut self, page: u32, chunk: u32, take: &mut dyn FnMut(ChunkHeader, &dyn Payload)) -> bool {
        match Self::take_chunk_with(self, page, chunk, |info, payload| take(header(info), &payload)) {
            Ok(()) => true,
            // The caller looks at the writer id, and counts the chunk as discarded.
            Err(Skip::NoWriter) => {
                take(ChunkHeader::default(), &[].as_slice());
                true
            }
            Err(_) => false,
        }
    }

    fn expect_chunk(&self, page: u32) {
        Self::expect_chunk(self, page);
    }

    fn scrape(&mut self, payload: &mut Vec<u8>, each: &mut dyn FnMut(ScrapedChunk<'_>)) {
        Self::scrape(
            self,
            payload,
            |_| true,
            |info, payload| each(ScrapedChunk { header: header(info), complete: info.complete, payload }),
        );
    }
}

impl Payload for HeldPayload<'_> {
    fn size_bytes(&self) -> usize {
        self.size_bytes()
    }

    fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost> {
        self.copy_to(&mut out[..self.size_bytes()])
    }

    fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost> {
        self.append_to(out)
    }
}

impl ChunkHeader {
    /// Splits a chunk that came by value into header and payload (`docs/spec/shared-memory.md
    /// §17`). Returns `None` if no chunk has this size.
    pub(crate) fn split_from(chunk: &[u8]) -> Option<(Self, &[u8])> {
        match ChunkInfo::from_data(0, 0, chunk, true) {
            Ok((info, payload)) => Some((header(&info), payload)),
            // The caller looks at the writer id, and counts the chunk as discarded.
            Err(Skip::NoWriter) => Some((Self::default(), &[])),
            Err(_) => None,
        }
    }
}

fn header(info: &ChunkInfo) -> ChunkHeader {
    ChunkHeader { writer_id: info.writer_id, chunk_id: info.chunk_id, count: info.count, flags: info.flags.0 }
}
