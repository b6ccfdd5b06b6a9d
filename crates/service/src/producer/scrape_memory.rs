//! Copying of chunks that a producer has written but not committed
//! (`docs/spec/shared-memory.md §16, §18`).

use super::{Memory, Producer};
use crate::buffer::Chunk;
use crate::buffer::table::Buffers;
use crate::context::Context;
use crate::ids::{BufferId, writer_from_wire};

impl Producer {
    /// Copies the uncommitted chunks that are for the wanted buffers.
    pub(crate) fn scrape(&mut self, buffers: &mut Buffers, is_wanted: impl Fn(BufferId) -> bool, cx: &mut Context<'_>) {
        if !self.wants_scraping || !self.allowed_buffers.iter().any(|&buffer| is_wanted(buffer)) {
            return;
        }
        let (id, identity) = (self.id, self.identity());
        let Self { memory, writers, allowed_buffers, .. } = self;
        let Buffers { by_id, scratch, .. } = buffers;
        let Memory::Shared(memory) = memory else { return };
        // Each page is looked at.
        cx.charge(memory.size_bytes() / memory.page_size_bytes().max(1));
        memory.scrape(scratch, &mut |chunk| {
            let target = writer_from_wire(chunk.header.writer_id.into()).and_then(|writer| writers.get(writer));
            let Some(target) = target.filter(|&target| is_wanted(target) && allowed_buffers.contains(&target)) else {
                return;
            };
            if let Some(buffer) = by_id.get_mut(&target) {
                let (header, complete, payload) = (chunk.header, chunk.complete, chunk.payload);
                let before = buffer.work();
                buffer.copy(&Chunk { producer: id, identity, header, complete, payload });
                cx.charge_bytes(payload.len());
                cx.work += buffer.work() - before;
            }
        });
    }
}
