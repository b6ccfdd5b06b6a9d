//! [`CommitRequest`]: the chunks and patches that a producer commits (`docs/spec/shared-memory.md`
//! §10, §11, `docs/spec/wire-protocol.md` §10).

use core::fmt;

use esatto_protozero::Message;

use crate::abi::PATCH_SIZE;

/// Largest number of patches in one [`ChunkToPatch`]. Further patches go into another one.
pub const MAX_PATCHES_PER_ENTRY: usize = 1024;

/// Callback that runs when the service has copied everything that a flush covers.
pub type FlushCallback = Box<dyn FnOnce() + Send>;

/// Request of the CommitData method.
#[derive(Default)]
pub struct CommitRequest {
    /// Finished chunks, in the order in which they were finished.
    pub moves: Vec<ChunkToMove>,
    /// Values for chunks that were sent before, or are in `moves`.
    pub patches: Vec<ChunkToPatch>,
    /// The request acknowledges flush requests up to this one; 0 for none.
    pub flush_request_id: u64,
    /// Callbacks to run when the service has replied. If there are none, no reply is needed
    /// (`drop_reply`).
    pub callbacks: Vec<FlushCallback>,
}

/// Chunk that the service is to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkToMove {
    /// Page index. It is not sent with `data`.
    pub page: u32,
    /// Chunk index in the page. It is not sent with `data` either.
    pub chunk: u32,
    /// Global id of the buffer. With 0 the service discards the chunk.
    pub target_buffer: u16,
    /// Writer of the chunk. It is not sent, because the chunk's header has it.
    pub writer_id: u16,
    /// The chunk's number in its writer's sequence. It is not sent either.
    pub chunk_id: u32,
    /// Bytes of the whole chunk with its header, if the memory is not shared (§17).
    pub data: Option<Vec<u8>>,
    /// Only with `data`: the chunk is still being written, and will be sent again.
    pub incomplete: bool,
}

/// Values for fields of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkToPatch {
    /// Global id of the buffer.
    pub target_buffer: u16,
    /// Writer of the chunk.
    pub writer_id: u16,
    /// The chunk's number in its writer's sequence.
    pub chunk_id: u32,
    /// Patches with ascending offsets.
    pub patches: Vec<Patch>,
    /// More patches will follow for the same chunk.
    pub has_more_patches: bool,
}

/// New value for four bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Offset from the start of the payload.
    pub offset: u16,
    /// Length as a 4-byte redundant varint, or another value that the application deferred.
    pub data: [u8; PATCH_SIZE],
}

impl CommitRequest {
    /// Returns true if a callback waits for the reply.
    pub fn wants_reply(&self) -> bool {
        !self.callbacks.is_empty()
    }

    /// Appends the fields of a `CommitDataRequest`.
    pub fn write_to(&self, message: &mut Message<'_>) {
        for entry in &self.moves {
            let mut m = message.begin(1);
            // Upstream's service drops an entry whose page is not in memory of the size that it
            // would have given, even if the bytes are here (§17).
            let (page, chunk) = if entry.data.is_some() { (0, 0) } else { (entry.page, entry.chunk) };
            m.varint(1, page.into());
            m.varint(2, chunk.into());
            m.varint(3, entry.target_buffer.into());
            if let Some(data) = &entry.data {
                m.bytes(4, data);
            }
            if entry.incomplete {
                m.bool(5, true);
            }
        }
        for entry in &self.patches {
            let mut m = message.begin(2);
            m.varint(1, entry.target_buffer.into());
            m.varint(2, entry.writer_id.into());
            m.varint(3, entry.chunk_id.into());
            for patch in &entry.patches {
                let mut p = m.begin(4);
                p.varint(1, patch.offset.into());
                p.bytes(2, &patch.data);
            }
            if entry.has_more_patches {
                m.bool(5, true);
            }
        }
        if self.flush_request_id != 0 {
            message.varint(3, self.flush_request_id);
        }
    }
}

impl fmt::Debug for CommitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitRequest")
            .field("moves", &self.moves)
            .field("patches", &self.patches)
            .field("flush_request_id", &self.flush_request_id)
            .field("callbacks", &self.callbacks.len())
            .finish()
    }
}
