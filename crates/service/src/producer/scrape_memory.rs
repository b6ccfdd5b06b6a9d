//! Copying of chunks that a producer has written but not committed
//! (`docs/spec/shared-memory.md §16, §18`).

use esatto_map::{LargeMap, Map};

use super::{Memory, Producer};
use crate::buffer::table::Buffers;
use crate::buffer::{CentralBuffer, Chunk, is_before};
use crate::context::Context;
use crate::ids::{BufferId, writer_from_wire};
use crate::shared_buffer::ChunkHeader;

impl Producer {
    /// Copies the uncommitted chunks of a producer that has disconnected.
    ///
    /// It may have died before it could register the writers of its last chunks. These go into the
    /// buffer that it writes to, if there is only one. Chunks of a writer that it did register may
    /// be for a session that has ended, so no other session gets them.
    pub(crate) fn scrape_last(&mut self, buffers: &mut Buffers, cx: &mut Context<'_>) {
        let of_others = self.allowed_buffers.iter().next().copied().filter(|_| self.allowed_buffers.len() == 1);
        self.copy_uncommitted(buffers, |_| true, of_others, cx);
    }

    /// Copies the uncommitted chunks that are for the wanted buffers.
    pub(crate) fn scrape(&mut self, buffers: &mut Buffers, is_wanted: impl Fn(BufferId) -> bool, cx: &mut Context<'_>) {
        self.copy_uncommitted(buffers, is_wanted, None, cx);
    }

    /// `of_others` is the buffer of writers that were never registered.
    fn copy_uncommitted(
        &mut self,
        buffers: &mut Buffers,
        is_wanted: impl Fn(BufferId) -> bool,
        of_others: Option<BufferId>,
        cx: &mut Context<'_>,
    ) {
        if !self.wants_scraping || !self.allowed_buffers.iter().any(|&buffer| is_wanted(buffer)) {
            return;
        }
        let (id, identity) = (self.id, self.identity());
        let Self { memory, writers, allowed_buffers, written_buffers, .. } = self;
        let Buffers { by_id, scratch, .. } = buffers;
        let Memory::Shared(memory) = memory else { return };
        // Each page is looked at twice.
        let pages = 2 * memory.size_bytes() / memory.page_size_bytes().max(1);
        cx.charge(pages);
        let target_of = |writer: u16| {
            let target = writer_from_wire(writer.into())
                .and_then(|writer| writers.get(writer).or_else(|| of_others.filter(|_| !writers.has_seen(writer))));
            target.filter(|&target| is_wanted(target) && allowed_buffers.contains(&target))
        };
        let mut uncommitted: Map<BufferId, usize> = Map::new();
        // Threads go on. A scrape has no gaps, but a second one may have more chunks. So the first
        // one only finds the newest chunk of each writer, and whether all up to it fit.
        let mut newest: LargeMap<u16, u32> = LargeMap::new();
        if allowed_buffers.iter().any(|id| by_id.get(id).is_some_and(|buffer| buffer.keeps_unread())) {
            cx.charge(pages);
            memory.scrape(scratch, &mut |chunk| {
                cx.charge_bytes(chunk.payload.len());
                let ChunkHeader { writer_id, chunk_id, .. } = chunk.header;
                if let Some(target) = target_of(writer_id) {
                    let last = newest.get_or_insert_with(writer_id, || chunk_id);
                    if is_before(*last, chunk_id) {
                        *last = chunk_id;
                    }
                    *uncommitted.get_or_default(target) += CentralBuffer::record_bytes(chunk.payload.len());
                }
            });
        }
        // The producer commits these chunks when there is room. A part of them would leave gaps.
        let fits = |id: BufferId, buffer: &CentralBuffer| {
            let bytes = uncommitted.get(&id).copied().unwrap_or(0);
            !buffer.keeps_unread() || buffer.unread_bytes() + bytes <= buffer.size_bytes()
        };
        let full: Vec<BufferId> = by_id.iter().filter(|(id, buffer)| !fits(**id, buffer)).map(|(id, _)| *id).collect();
        memory.scrape(scratch, &mut |chunk| {
            let Some(target) = target_of(chunk.header.writer_id).filter(|target| !full.contains(target)) else {
                return;
            };
            if let Some(buffer) = by_id.get_mut(&target) {
                let is_known = |last: &u32| !is_before(*last, chunk.header.chunk_id);
                if buffer.keeps_unread() && !newest.get(&chunk.header.writer_id).is_some_and(is_known) {
                    return;
                }
                let (header, complete, payload) = (chunk.header, chunk.complete, chunk.payload);
                written_buffers.insert(target);
                let before = buffer.work();
                buffer.copy(&Chunk { producer: id, identity, header, complete, payload });
                cx.charge_bytes(payload.len());
                cx.work += buffer.work() - before;
            }
        });
    }
}
