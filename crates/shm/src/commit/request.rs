//! What leaves an arbiter: commits, and the trait through which they leave
//! (`docs/spec/shared-memory.md` §10, §11, `docs/spec/wire-protocol.md` §10).

use core::fmt;

use esatto_protozero::Message;

use crate::abi::PATCH_SIZE;

/// Most patches in one [`ChunkToPatch`]; what is more goes into another one.
pub const MAX_PATCHES_PER_ENTRY: usize = 1024;

/// Runs when the service has copied everything that a flush covers.
pub type FlushCallback = Box<dyn FnOnce() + Send>;

/// One CommitData request.
#[derive(Default)]
pub struct CommitRequest {
    /// Finished chunks, in the order in which they were finished.
    pub moves: Vec<ChunkToMove>,
    /// Length fields for chunks that were sent before or are in `moves`.
    pub patches: Vec<ChunkToPatch>,
    /// Acknowledges flush requests up to this one; 0 for none.
    pub flush_request_id: u64,
    /// To be run when the service has replied. Empty: no reply is needed (`drop_reply`).
    pub callbacks: Vec<FlushCallback>,
}

/// A chunk for the service to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkToMove {
    /// Page index.
    pub page: u32,
    /// Chunk index in the page.
    pub chunk: u32,
    /// Global id of the buffer; 0 to have the chunk discarded.
    pub target_buffer: u16,
    /// The whole chunk with its header, if memory is not shared (§17).
    pub data: Option<Vec<u8>>,
    /// Only with `data`: the chunk is still being written and will come again.
    pub incomplete: bool,
}

/// Values for length fields of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkToPatch {
    /// Global id of the buffer.
    pub target_buffer: u16,
    /// Writer of the chunk.
    pub writer_id: u16,
    /// The chunk's number in its writer's sequence.
    pub chunk_id: u32,
    /// Ascending offsets.
    pub patches: Vec<Patch>,
    /// More will follow for the same chunk.
    pub has_more_patches: bool,
}

/// Four bytes to be overwritten in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// From the start of the payload.
    pub offset: u16,
    /// A length as 4-byte redundant varint.
    pub data: [u8; PATCH_SIZE],
}

impl CommitRequest {
    /// True if somebody waits for the reply.
    pub fn wants_reply(&self) -> bool {
        !self.callbacks.is_empty()
    }

    /// Appends the fields of a `CommitDataRequest`.
    pub fn write_to(&self, message: &mut Message<'_>) {
        for entry in &self.moves {
            let mut m = message.begin(1);
            m.varint(1, entry.page.into());
            m.varint(2, entry.chunk.into());
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
