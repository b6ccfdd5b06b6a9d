//! Writer for loom models. Its packets have one byte. At chunk boundaries it takes the same steps
//! as the real writer (`trace_writer.rs`, `chunk/`). Its chunks come from the real arbiter.

use std::sync::Arc;

use crate::{
    abi::{ChunkFlags, ChunkHeader, Packets},
    arbiter::{Arbiter, ExhaustedPolicy, LossMark, WriterRef},
    chunk_states::{Chunk, announce, state::BeingWritten},
    commit::PatchList,
    memory::{LoomRegion, Region},
};

/// Bytes of a fragment: size and content.
const FRAGMENT: usize = 2;

/// Writes the packets of one sequence.
#[derive(Debug)]
pub struct TraceWriter {
    arbiter: Arc<Arbiter>,
    writer: WriterRef,
    policy: ExhaustedPolicy,
    current: Option<Current>,
    next_chunk_id: u32,
    dropping: bool,
    drop_count: u64,
    written: u64,
}

/// Chunk that the writer fills.
#[derive(Debug)]
struct Current {
    chunk: Chunk<BeingWritten>,
    chunk_id: u32,
    /// Number of fragments. As soon as there is one, the count in the header is one more, in
    /// advance.
    fragments: u16,
}

impl TraceWriter {
    /// Byte of the packets that mark a loss.
    pub const MARK: u8 = 0xff;

    pub(super) fn new(arbiter: Arc<Arbiter>, writer: WriterRef, policy: ExhaustedPolicy) -> Self {
        let (current, next_chunk_id) = (None, 0);
        Self { arbiter, writer, policy, current, next_chunk_id, dropping: false, drop_count: 0, written: 0 }
    }

    /// Makes a writer that writes the mark of a loss when it is dropped.
    pub(super) fn of_mark(arbiter: Arc<Arbiter>, mark: LossMark) -> Self {
        let mut writer = Self::new(arbiter, mark.writer, ExhaustedPolicy::Drop);
        writer.next_chunk_id = mark.chunk_id;
        writer.dropping = true;
        writer
    }

    /// Panics: a writer that drops everything has no model.
    pub fn null() -> Self {
        unreachable!("models end before their writers run out")
    }

    /// Writes a packet. Returns `false` if there is no chunk.
    pub fn write(&mut self, byte: u8) -> bool {
        if self.current.is_none() {
            self.current = self.acquire();
        }
        let Some(current) = &mut self.current else { return false };
        let smb = self.arbiter.smb();
        let at = usize::from(current.fragments) * FRAGMENT;
        current.fragments += 1;
        let field = smb.packets_field(&current.chunk);
        if current.fragments == 1 {
            announce(field, Packets::new(1, ChunkFlags::NONE));
        }
        // SAFETY: this writer owns the chunk.
        unsafe { smb.region().write_from(current.chunk.payload_offset() + at, &[1, byte]) };
        self.written += FRAGMENT as u64;
        if at + 2 * FRAGMENT > LoomRegion::MODELLED {
            self.close();
        } else {
            announce(field, Packets::new(current.fragments + 1, ChunkFlags::NONE));
        }
        true
    }

    /// Gives the current chunk to the service, and has everything sent soon.
    pub fn flush(&mut self) {
        self.close();
        self.arbiter.flush_writer(None);
    }

    /// Returns the bytes written since the writer was made.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns how often the writer began to drop packets because no chunk was free.
    pub fn drop_count(&self) -> u64 {
        self.drop_count
    }

    /// Returns true if the writer has no chunk because none was free at its last attempt.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    fn acquire(&mut self) -> Option<Current> {
        let chunk_id = self.next_chunk_id;
        let header = ChunkHeader { chunk_id, writer_id: self.writer.writer_id, packets: Packets::default() };
        let Some(chunk) = self.arbiter.acquire_chunk(header, self.policy, self.dropping) else {
            self.drop_count += u64::from(!self.dropping);
            self.dropping = true;
            return None;
        };
        self.dropping = false;
        self.next_chunk_id += 1;
        Some(Current { chunk, chunk_id, fragments: 0 })
    }

    /// Writes a packet that marks a loss, if there is a chunk.
    fn mark_loss(&mut self) -> bool {
        let chunk_id = self.next_chunk_id;
        let header = ChunkHeader { chunk_id, writer_id: self.writer.writer_id, packets: Packets::default() };
        let Some(chunk) = self.arbiter.acquire_chunk_for_mark(header) else { return false };
        self.next_chunk_id += 1;
        self.current = Some(Current { chunk, chunk_id, fragments: 0 });
        let is_written = self.write(Self::MARK);
        self.close();
        is_written
    }

    fn close(&mut self) {
        let Some(Current { chunk, chunk_id, fragments }) = self.current.take() else { return };
        let end = usize::from(fragments) * FRAGMENT;
        if end < LoomRegion::MODELLED {
            // The fragment that was counted in advance becomes an empty one. SAFETY: this writer
            // owns the chunk.
            unsafe { self.arbiter.smb().region().write_from(chunk.payload_offset() + end, &[0]) };
        }
        self.arbiter.return_chunk(chunk, false, self.writer, chunk_id, &mut PatchList::default());
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        self.flush();
        let (writer, chunk_id) = (self.writer, self.next_chunk_id);
        let mark = LossMark { writer, chunk_id, first_packet: false, loss: 1 };
        if self.dropping && !self.mark_loss() {
            self.arbiter.retire_marked_writer(mark);
        } else {
            self.arbiter.retire_writer(self.writer);
        }
    }
}
