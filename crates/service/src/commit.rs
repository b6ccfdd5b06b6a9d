//! Chunks come in: by commits and by scraping (`docs/spec/service.md §14`, `docs/spec/shared-memory.md §16, §18`).

use std::collections::BTreeMap;

use esatto_schema::CommitDataRequestReader;
use esatto_schema::commit_data_request::{ChunkToPatchReader, ChunksToMoveReader};
use esatto_shm::planted;

use crate::api::CallId;
use crate::buffer::{CentralBuffer, Chunk, Patch};
use crate::context::Context;
use crate::ids::{BufferId, ProducerId, SessionId, WriterId, writer_from_wire};
use crate::probe::{self, Note};
use crate::producer::{Memory, Producer};
use crate::service::{Discarded, Service};
use crate::shared_buffer::ChunkHeader;

/// Patches of one chunk in one commit.
const MAX_PATCHES_PER_CHUNK: usize = 1024;

/// Bytes of a chunk that comes inside a commit, header included.
const MAX_CHUNK_BYTES: usize = 65535;

impl Service {
    pub(crate) fn commit_data(
        &mut self,
        call: CallId,
        producer: ProducerId,
        request: CommitDataRequestReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let Self { producers, buffers, discarded, scratch, .. } = self;
        let Some(committer) = producers.get_mut(&producer) else { return cx.reject(call) };
        if matches!(committer.memory, Memory::Unset | Memory::Creating) {
            return cx.reject(call);
        }
        for chunk in request.chunks_to_move() {
            move_chunk(committer, chunk, buffers, scratch, discarded);
        }
        for chunk in request.chunks_to_patch() {
            patch_chunk(producer, chunk, buffers, discarded);
        }
        if let Some(flush) = request.flush_request_id().filter(|&id| id != 0) {
            self.acknowledge_flush(producer, flush, cx);
        }
        cx.reply_empty(call);
    }

    /// Copies uncommitted chunks into the buffers of a session.
    pub(crate) fn scrape_session(&mut self, session: SessionId) {
        let Self { producers, buffers, scratch, sessions, .. } = self;
        let Some(session) = sessions.get(&session) else { return };
        probe::note(Note::Scrape(Some(session.id.0)));
        for producer in producers.values_mut() {
            scrape(producer, buffers, scratch, |buffer| session.buffers.contains(&buffer));
        }
    }

    /// Copies a producer's uncommitted chunks into whatever buffers they are for.
    pub(crate) fn scrape_producer(&mut self, producer: ProducerId) {
        let Self { producers, buffers, scratch, .. } = self;
        if let Some(producer) = producers.get_mut(&producer) {
            probe::note(Note::Scrape(None));
            scrape(producer, buffers, scratch, |_| true);
        }
    }
}

fn move_chunk(
    producer: &mut Producer,
    chunk: ChunksToMoveReader<'_>,
    buffers: &mut BTreeMap<BufferId, CentralBuffer>,
    scratch: &mut Vec<u8>,
    discarded: &mut Discarded,
) {
    let (header, payload, complete): (ChunkHeader, &[u8], bool) = match (&mut producer.memory, chunk.data()) {
        // Chunks by value are for those who cannot share memory.
        (Memory::Shared(memory), None) => {
            let (page, index) = (chunk.page().unwrap_or(0), chunk.chunk().unwrap_or(0));
            match memory.take_chunk(page, index, scratch) {
                Some(header) => (header, scratch, true),
                None => return,
            }
        }
        (Memory::Emulated, Some(data)) if data.len() <= MAX_CHUNK_BYTES => match ChunkHeader::split_from(data) {
            Some((header, payload)) => (header, payload, !chunk.chunk_incomplete().unwrap_or(false)),
            None => return,
        },
        _ => return,
    };
    let target = BufferId::from_wire(chunk.target_buffer().unwrap_or(0));
    let buffer = target.and_then(|id| target_of(producer, id, header.writer_id).and_then(|()| buffers.get_mut(&id)));
    match buffer {
        Some(buffer) => {
            buffer.copy(&Chunk { producer: producer.id, identity: producer.identity(), header, complete, payload });
        }
        None => discarded.chunks += 1 + u64::from(planted!("discarded-counted-twice")),
    }
}

/// Whether this writer of this producer may write to this buffer.
fn target_of(producer: &Producer, buffer: BufferId, writer: u16) -> Option<()> {
    let writer = writer_from_wire(writer.into())?;
    let is_allowed = (producer.allowed_buffers.contains(&buffer) || planted!("foreign-buffer"))
        && producer.writers.get(&writer).is_none_or(|&registered| registered == buffer);
    is_allowed.then_some(())
}

fn patch_chunk(
    producer: ProducerId,
    chunk: ChunkToPatchReader<'_>,
    buffers: &mut BTreeMap<BufferId, CentralBuffer>,
    discarded: &mut Discarded,
) {
    let count = chunk.patches().count();
    let writer = writer_from_wire(chunk.writer_id().unwrap_or(0));
    let buffer = BufferId::from_wire(chunk.target_buffer().unwrap_or(0)).and_then(|id| buffers.get_mut(&id));
    let (Some(WriterId(writer)), Some(buffer)) = (writer, buffer) else {
        discarded.patches += count as u64;
        return;
    };
    if count > MAX_PATCHES_PER_CHUNK {
        discarded.patches += count as u64;
        return;
    }
    let parse = |patch: esatto_schema::commit_data_request::chunk_to_patch::PatchReader<'_>| {
        let data = patch.data().unwrap_or_default().try_into().ok()?;
        Some(Patch { offset: patch.offset().unwrap_or(0), data })
    };
    let malformed = chunk.patches().filter(|&patch| parse(patch).is_none()).count();
    discarded.patches += malformed as u64;
    // A chunk whose patches did not all have the right size keeps waiting.
    let more = chunk.has_more_patches().unwrap_or(false) || malformed != 0;
    buffer.patch(producer, WriterId(writer), chunk.chunk_id().unwrap_or(0), chunk.patches().filter_map(parse), more);
}

fn scrape(
    producer: &mut Producer,
    buffers: &mut BTreeMap<BufferId, CentralBuffer>,
    scratch: &mut Vec<u8>,
    is_wanted: impl Fn(BufferId) -> bool,
) {
    if !producer.wants_scraping {
        return;
    }
    let (id, identity) = (producer.id, producer.identity());
    let Producer { memory, writers, allowed_buffers, .. } = producer;
    let Memory::Shared(memory) = memory else { return };
    memory.scrape(scratch, &mut |chunk| {
        let target = writer_from_wire(chunk.header.writer_id.into()).and_then(|writer| writers.get(&writer));
        let Some(target) = target.filter(|&&target| is_wanted(target) && allowed_buffers.contains(&target)) else {
            return;
        };
        if let Some(buffer) = buffers.get_mut(target) {
            let (header, complete, payload) = (chunk.header, chunk.complete, chunk.payload);
            buffer.copy(&Chunk { producer: id, identity, header, complete, payload });
        }
    });
}
