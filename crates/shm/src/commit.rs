//! What leaves an arbiter: commits, and the trait through which they leave
//! (`docs/spec/shared-memory.md` §10, §11, `docs/spec/wire-protocol.md` §10).

use core::{fmt, time::Duration};

use esatto_protozero::Message;

use crate::abi::PATCH_SIZE;

/// Most patches in one [`ChunkToPatch`]; what is more goes into another one.
pub const MAX_PATCHES_PER_ENTRY: usize = 1024;

/// Runs when the service has copied everything that a flush covers.
pub type FlushCallback = Box<dyn FnOnce() + Send>;

/// Where commits go: the connection to the service, or the service itself.
///
/// Called by writer threads ([`wake`](Self::wake) and below) and by whoever calls
/// [`Arbiter::send_pending`](crate::Arbiter::send_pending). No lock that a writer needs is held during any
/// of these calls, except that calls of `commit`, `register_writer` and `unregister_writer` never overlap; these
/// three must not call back into the arbiter.
///
/// The arbiter keeps its sink alive; a sink that needs its arbiter holds a `Weak`.
pub trait CommitSink: Send + Sync {
    /// Sends a CommitData request. Requests go out in the order of these calls.
    fn commit(&self, request: CommitRequest);

    /// Sends RegisterTraceWriter.
    fn register_writer(&self, writer_id: u16, target_buffer: u16);

    /// Sends UnregisterTraceWriter.
    fn unregister_writer(&self, writer_id: u16);

    /// Something is to be sent: `send_pending` should be called soon, on the connection's thread.
    /// Must not block. Called once, until `send_pending` ran.
    fn wake(&self);

    /// Like [`wake`](Self::wake), but there is time: the configured batching delay. The default wakes at once.
    fn wake_after(&self, delay: Duration) {
        let _ = delay;
        self.wake();
    }

    /// True on the thread that sends commits: if that thread has to wait for a free chunk, it
    /// sends what is pending itself, as nobody else would.
    fn is_connection_thread(&self) -> bool {
        false
    }

    /// Lets a writer wait for a free chunk (§12). The default sleeps; a simulation lets the service run.
    fn stall(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Writers hold more than half of the chunks between them, or (`exhausted`) there is none left. Each keeps one as long as it
    /// lives, even if it never writes again: whoever can flush those that are idle should do so. The first is said again and again while more are taken.
    /// Must not block, and not flush a writer from inside of the call.
    fn on_scarce(&self, exhausted: bool) {
        let _ = exhausted;
    }

    /// A writer with [`ExhaustedPolicy::StallThenAbort`](crate::ExhaustedPolicy::StallThenAbort) has waited in vain. Upstream
    /// aborts the process; if this returns, as the default does, the writer drops.
    fn on_stalled_too_long(&self, writer_id: u16) {
        let _ = writer_id;
    }

    /// A writer was asked for while [`MAX_WRITER_ID`](crate::abi::MAX_WRITER_ID) of them live. It
    /// drops everything that is written to it, without a trace in the data. Must not block.
    fn on_writer_refused(&self) {}

    /// The peer has changed the state of a chunk that a writer had. What is in the chunk is lost.
    /// Must not block.
    fn on_chunk_lost(&self) {}
}

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
