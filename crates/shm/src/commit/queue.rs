//! [`CommitQueue`]: the finished chunks and patches of an arbiter that wait to be sent.

use super::{
    by_value::copy_chunk,
    patch_list::PatchList,
    request::{ChunkToMove, ChunkToPatch, CommitRequest, FlushCallback, MAX_PATCHES_PER_ENTRY, Patch},
    reservations::Target,
    splitter::RequestSplitter,
};
use crate::{
    abi::{ChunkFlags, PATCH_SIZE, Packets},
    chunk_states::{
        Chunk, Smb, announce,
        state::{BeingWritten, Complete},
    },
    memory::Region,
    sync::Ordering,
};

/// Finished chunk.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) chunk: FinishedChunk,
    pub(crate) target: Target,
    pub(crate) writer_id: u16,
    pub(crate) chunk_id: u32,
}

#[derive(Debug)]
pub(crate) enum FinishedChunk {
    Complete(Chunk<Complete>),
    /// Kept back so that length fields can be written in place (§11, direct patching).
    Unpatched(Chunk<BeingWritten>),
    /// The peer changed the page word, so there is nothing to send.
    Lost,
}

/// Urgency of something to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    #[default]
    Idle,
    /// When the batching delay is over.
    Batched,
    Now,
}

/// Entries that were not sent yet, in the order in which they came.
///
/// The memory bounds their number: a chunk that is not sent is not freed, each chunk has a bounded
/// number of length fields, and writers without chunks add nothing.
#[derive(Default)]
pub(crate) struct CommitQueue {
    moves: Vec<Finished>,
    patches: Vec<(Target, ChunkToPatch)>,
    flush_request_id: u64,
    callbacks: Vec<FlushCallback>,
    pub(crate) registrations: Vec<(u16, u16)>,
    pub(crate) retired: Vec<u16>,
    /// Bytes of the chunks in `moves`.
    pub(crate) bytes: usize,
    /// Urgency that [`Notify`](crate::Notify) was told already.
    pub(crate) announced: Urgency,
}

/// Content of the queue that was taken out to be sent.
pub(crate) struct Batch {
    pub(crate) registrations: Vec<(u16, u16)>,
    pub(crate) requests: Vec<CommitRequest>,
    pub(crate) retired: Vec<u16>,
    /// Number of chunks that the peer has taken away while they waited.
    pub(crate) lost: usize,
}

impl CommitQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.patches.is_empty() && self.flush_request_id == 0 && self.callbacks.is_empty()
    }

    pub(crate) fn push_chunk(&mut self, finished: Finished) {
        self.bytes += match &finished.chunk {
            FinishedChunk::Complete(chunk) => chunk.size(),
            FinishedChunk::Unpatched(chunk) => chunk.size(),
            FinishedChunk::Lost => return,
        };
        self.moves.push(finished);
    }

    pub(crate) fn acknowledge_flush(&mut self, flush_request_id: u64) {
        self.flush_request_id = self.flush_request_id.max(flush_request_id);
    }

    pub(crate) fn push_callback(&mut self, callback: FlushCallback) {
        self.callbacks.push(callback);
    }

    /// Takes the records with values from the head of a writer's list. Writes them into chunks that
    /// are still kept back, or queues them as patches. Returns true if it queued any.
    pub(crate) fn take_ready<R: Region>(
        &mut self,
        smb: &Smb<R>,
        target: Target,
        writer_id: u16,
        list: &mut PatchList,
    ) -> bool {
        let mut sent = false;
        while let Some((record, value)) = list.ready() {
            list.pop();
            let last = list.front_chunk() != Some(record.chunk_id);
            if self.patch_in_place(smb, writer_id, record.chunk_id, record.offset, value, last) {
                continue;
            }
            sent = true;
            let patch = Patch { offset: record.offset, data: value };
            let entry = self.patch_entry(target, writer_id, record.chunk_id);
            entry.patches.push(patch);
            entry.has_more_patches = !last;
        }
        sent
    }

    /// Returns the last entry if it is for this chunk and has room, else a new one.
    fn patch_entry(&mut self, target: Target, writer_id: u16, chunk_id: u32) -> &mut ChunkToPatch {
        let fits = self.patches.last().is_some_and(|(_, e)| {
            e.writer_id == writer_id && e.chunk_id == chunk_id && e.patches.len() < MAX_PATCHES_PER_ENTRY
        });
        if !fits {
            let entry =
                ChunkToPatch { target_buffer: 0, writer_id, chunk_id, patches: Vec::new(), has_more_patches: false };
            self.patches.push((target, entry));
        }
        let (_, entry) = self.patches.last_mut().expect("an entry was pushed if there was none");
        entry
    }

    fn patch_in_place<R: Region>(
        &mut self,
        smb: &Smb<R>,
        writer_id: u16,
        chunk_id: u32,
        offset: u16,
        value: [u8; PATCH_SIZE],
        last: bool,
    ) -> bool {
        let found = self.moves.iter_mut().rev().find(|f| {
            matches!(f.chunk, FinishedChunk::Unpatched(_)) && f.writer_id == writer_id && f.chunk_id == chunk_id
        });
        let Some(finished) = found else { return false };
        let FinishedChunk::Unpatched(chunk) = &finished.chunk else { return false };
        // SAFETY: an unpatched chunk is BeingWritten, and its writer gave it to this queue.
        unsafe { smb.region().write_from(chunk.payload_offset() + usize::from(offset), &value) };
        if last {
            let field = smb.packets_field(chunk);
            let packets = Packets(field.load(Ordering::Relaxed));
            let flags = packets.flags().without(ChunkFlags::NEEDS_PATCHING);
            announce(field, Packets::new(packets.count(), flags));
            finished.chunk.complete(smb);
        }
        true
    }

    /// Assigns a buffer to the entries of a reservation.
    pub(crate) fn resolve(&mut self, reservation: u16, buffer: u16) {
        let targets =
            (self.moves.iter_mut().map(|m| &mut m.target)).chain(self.patches.iter_mut().map(|(target, _)| target));
        for target in targets {
            if *target == Target::Reservation(reservation) {
                *target = Target::Buffer(buffer);
            }
        }
    }

    /// Takes out everything that can be sent. With `held`, only registrations can. With
    /// `emulation`, chunks are copied into the requests and freed.
    pub(crate) fn take<R: Region>(&mut self, smb: &Smb<R>, held: bool, emulation: bool) -> Batch {
        self.announced = Urgency::Idle;
        let registrations = std::mem::take(&mut self.registrations);
        if held {
            return Batch { registrations, requests: Vec::new(), retired: Vec::new(), lost: 0 };
        }
        let retired = std::mem::take(&mut self.retired);
        if self.is_empty() {
            return Batch { registrations, requests: Vec::new(), retired, lost: 0 };
        }
        self.bytes = 0;
        let mut lost = 0;
        let mut splitter = RequestSplitter::new(emulation);
        for mut finished in self.moves.drain(..) {
            finished.chunk.complete(smb);
            let FinishedChunk::Complete(chunk) = finished.chunk else {
                lost += 1;
                continue;
            };
            let mut entry = ChunkToMove {
                page: chunk.page(),
                chunk: chunk.index(),
                target_buffer: finished.target.buffer(),
                writer_id: finished.writer_id,
                chunk_id: finished.chunk_id,
                data: None,
                incomplete: false,
            };
            if emulation {
                entry.data = Some(copy_chunk(smb, &chunk));
                // Only this process uses the memory, so this cannot fail.
                let _ = smb.free_unread(chunk);
            }
            splitter.push_move(entry);
        }
        for (target, mut entry) in self.patches.drain(..) {
            entry.target_buffer = target.buffer();
            splitter.push_patch(entry);
        }
        let flush_request_id = std::mem::take(&mut self.flush_request_id);
        let requests = splitter.finish(flush_request_id, std::mem::take(&mut self.callbacks));
        Batch { registrations, requests, retired, lost }
    }
}

impl FinishedChunk {
    fn complete<R: Region>(&mut self, smb: &Smb<R>) {
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Unpatched(chunk) => match smb.complete(chunk) {
                Ok(chunk) => Self::Complete(chunk),
                Err(_) => Self::Lost,
            },
            other => other,
        };
    }
}
