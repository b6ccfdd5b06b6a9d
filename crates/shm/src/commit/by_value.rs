//! Chunks by value: requests that carry the bytes of chunks, for a service that cannot share memory
//! (emulation, `docs/spec/shared-memory.md` §17).

use esatto_map::Map;

use super::{
    request::{ChunkToMove, CommitRequest},
    splitter::RequestSplitter,
};
use crate::{
    abi::CHUNK_HEADER_SIZE,
    chunk_states::{Chunk, Smb, state::Complete},
    memory::Region,
    scrape::scrape,
};

/// Copies the whole chunk, header included.
pub(super) fn copy_chunk<R: Region>(smb: &Smb<R>, chunk: &Chunk<Complete>) -> Vec<u8> {
    let mut data = vec![0; chunk.size()];
    data[..CHUNK_HEADER_SIZE].copy_from_slice(&smb.header(chunk).to_bytes());
    smb.region().read_into(chunk.payload_offset(), &mut data[CHUNK_HEADER_SIZE..]);
    data
}

/// Returns requests with copies of the chunks that the `registered` writers are still writing. The
/// map has the buffer of each writer. There are no requests if there is no such chunk.
pub(crate) fn copy_unfinished<R: Region>(smb: &Smb<R>, registered: &Map<u16, u16>) -> Vec<CommitRequest> {
    let mut splitter = RequestSplitter::new(true);
    let mut found_any = false;
    scrape(
        smb,
        &mut Vec::new(),
        // Complete chunks are queued, and leave before the acknowledgement anyway.
        &mut |info| !info.complete && registered.contains_key(&info.writer_id),
        &mut |info, payload| {
            found_any = true;
            let mut data = info.header().to_bytes().to_vec();
            data.extend_from_slice(payload);
            splitter.push_move(ChunkToMove {
                page: info.page,
                chunk: info.chunk,
                target_buffer: registered.get(&info.writer_id).copied().unwrap_or(0),
                writer_id: info.writer_id,
                chunk_id: info.header().chunk_id,
                data: Some(data),
                incomplete: !info.complete,
            });
        },
    );
    if found_any { splitter.finish(0, Vec::new()) } else { Vec::new() }
}
