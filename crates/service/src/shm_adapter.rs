//! `esatto_shm`'s view of a region, as the service wants it.

use esatto_shm::{Region, ServiceRegion, Skip};

use crate::shared_buffer::{ChunkHeader, ScrapedChunk, SharedBuffer};

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
            // Counted as discarded by whoever looks at the writer id.
            Err(Skip::NoWriter) => Some(ChunkHeader::default()),
            Err(_) => None,
        }
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

fn header(info: &esatto_shm::ChunkInfo) -> ChunkHeader {
    ChunkHeader { writer_id: info.writer_id, chunk_id: info.chunk_id, count: info.count, flags: info.flags.0 }
}
