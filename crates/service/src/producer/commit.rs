//! Commits: copying chunks and patches into the buffers (`docs/spec/service.md §14`,
//! `docs/spec/shared-memory.md §16, §18`).

use esatto_map::{Map, Set};
use esatto_protozero::Fields;
use esatto_schema::CommitDataRequestReader;
use esatto_schema::commit_data_request::{ChunkToPatchReader, ChunksToMoveReader, chunks_to_move};

use super::writers::Writers;
use super::{Memory, Producer};
use crate::buffer::table::{Buffers, Discarded, RingNames};
use crate::buffer::{CentralBuffer, Chunk, Patch};
use crate::context::Context;
use crate::ids::{BufferId, MAX_PATCHED_WRITER, ProducerId, WriterId, writer_from_wire};
use crate::shared_buffer::ChunkHeader;

/// Patches of one chunk in one commit.
const MAX_PATCHES_PER_CHUNK: usize = 1024;

impl Producer {
    /// Copies the chunks of a commit into the buffers, and applies its patches.
    ///
    /// Returns the flush that it answers, 0 if none. Returns `None` if the producer has no memory
    /// yet.
    pub(crate) fn commit(
        &mut self,
        request: CommitDataRequestReader<'_>,
        buffers: &mut Buffers,
        cx: &mut Context<'_>,
    ) -> Option<u64> {
        if matches!(self.memory, Memory::Unset | Memory::Creating) {
            return None;
        }
        let mut moves = request.chunks_to_move().map(Move::parse);
        let mut next = moves.next();
        while let Some(chunk) = next {
            cx.charge(1);
            next = moves.next();
            if let (Memory::Shared(memory), Some(next)) = (&self.memory, &next) {
                memory.expect_chunk(next.page);
            }
            move_chunk(self, &chunk, buffers, cx);
        }
        for chunk in request.chunks_to_patch() {
            cx.charge(1);
            cx.charge_bytes(chunk.as_bytes().len());
            patch_chunk(self.id, chunk, buffers, cx);
        }
        Some(request.flush_request_id().unwrap_or(0))
    }
}

/// An unchecked entry of `chunks_to_move`.
#[derive(Debug, Default)]
struct Move<'a> {
    page: u32,
    chunk: u32,
    target: u32,
    data: Option<&'a [u8]>,
    is_incomplete: bool,
}

impl<'a> Move<'a> {
    /// Parses the fields in one pass, because there are very many entries.
    fn parse(entry: ChunksToMoveReader<'a>) -> Self {
        let mut this = Self::default();
        for field in Fields::new(entry.as_bytes()) {
            match field.id {
                chunks_to_move::field::PAGE => this.page = field.as_u32(),
                chunks_to_move::field::CHUNK => this.chunk = field.as_u32(),
                chunks_to_move::field::TARGET_BUFFER => this.target = field.as_u32(),
                chunks_to_move::field::DATA => this.data = Some(field.as_bytes()),
                chunks_to_move::field::CHUNK_INCOMPLETE => this.is_incomplete = field.as_bool(),
                _ => {}
            }
        }
        this
    }
}

fn move_chunk(producer: &mut Producer, chunk: &Move<'_>, buffers: &mut Buffers, cx: &mut Context<'_>) {
    let (id, identity) = (producer.id, producer.identity());
    let Producer { memory, writers, allowed_buffers, written_buffers, .. } = producer;
    let Buffers { by_id, discarded, names, scratch, .. } = buffers;
    let mut targets = Targets { writers, allowed_buffers, written_buffers, buffers: by_id, discarded };
    match (memory, chunk.data) {
        (Memory::Shared(memory), None) => {
            memory.take_chunk_with(chunk.page, chunk.chunk, &mut |header, payload| {
                if let Some(buffer) = targets.find(chunk.target, header.writer_id) {
                    let before = buffer.work();
                    buffer.copy_from(id, identity, header, payload, scratch);
                    cx.work += buffer.work() - before;
                    note_names(names, chunk.target, buffer);
                }
            });
        }
        // Producers that share memory send the marks of their last losses in this way.
        (Memory::Shared(_) | Memory::Emulated, Some(data)) => {
            let Some((header, payload)) = ChunkHeader::split_from(data) else { return };
            if let Some(buffer) = targets.find(chunk.target, header.writer_id) {
                let (complete, before) = (!chunk.is_incomplete, buffer.work());
                buffer.copy(&Chunk { producer: id, identity, header, complete, payload });
                cx.work += buffer.work() - before;
                note_names(names, chunk.target, buffer);
            }
        }
        _ => {}
    }
}

/// Notes the target of a chunk if its writers have to write their names again.
fn note_names(names: &mut Option<RingNames>, target: u32, buffer: &mut CentralBuffer) {
    if let (Some(names), Some(id)) = (names, BufferId::from_wire(target)) {
        names.note(id, buffer);
    }
}

/// The buffers that a producer may write to.
struct Targets<'a> {
    writers: &'a Writers,
    allowed_buffers: &'a Set<BufferId>,
    written_buffers: &'a mut Set<BufferId>,
    buffers: &'a mut Map<BufferId, Box<CentralBuffer>>,
    discarded: &'a mut Discarded,
}

impl Targets<'_> {
    /// Returns the buffer of a writer's chunk. Without one the chunk counts as discarded.
    fn find(&mut self, target: u32, writer: u16) -> Option<&mut CentralBuffer> {
        let Self { writers, allowed_buffers, written_buffers, buffers, discarded } = self;
        let writer = writer_from_wire(writer.into());
        let is_allowed = |target: &BufferId| {
            let registered = writer.map(|writer| writers.get(writer));
            allowed_buffers.contains(target)
                && registered.is_some_and(|registered| registered.is_none_or(|registered| registered == *target))
        };
        let target = BufferId::from_wire(target).filter(is_allowed);
        let Some((target, buffer)) = target.and_then(|target| Some((target, buffers.get_mut(&target)?))) else {
            discarded.chunks += 1;
            return None;
        };
        // Most producers write to one buffer.
        if !written_buffers.contains(&target) {
            written_buffers.insert(target);
        }
        Some(buffer)
    }
}

fn patch_chunk(producer: ProducerId, chunk: ChunkToPatchReader<'_>, buffers: &mut Buffers, cx: &mut Context<'_>) {
    let count = chunk.patches().count();
    let writer = writer_from_wire(chunk.writer_id().unwrap_or(0)).filter(|writer| *writer <= MAX_PATCHED_WRITER);
    let buffer = BufferId::from_wire(chunk.target_buffer().unwrap_or(0)).and_then(|id| buffers.by_id.get_mut(&id));
    let discarded = &mut buffers.discarded;
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
    let before = buffer.work();
    buffer.patch(producer, WriterId(writer), chunk.chunk_id().unwrap_or(0), chunk.patches().filter_map(parse), more);
    cx.work += buffer.work() - before;
}
