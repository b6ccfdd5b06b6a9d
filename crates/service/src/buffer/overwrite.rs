//! Overwriting unread chunks: the erasing read (`docs/spec/trace-buffer.md §4, §12`).

use super::chunk_list::is_before;
use super::record::{self, ChunkRecord, FIRST_CONTINUES, INCOMPLETE, LAST_CONTINUES, Record};
use super::{CentralBuffer, loss};

/// Highest number of chunks that are removed with an overwritten one because they come before it in
/// its sequence. It is also the highest number that are removed because their packet began in one
/// of these.
///
/// Protects the event loop, because in a hostile order they are all chunks of the buffer, and a
/// chunk of a few bytes overwrites the one. At the first bound only the overwritten chunk is
/// removed, which leaves a gap in its sequence. At the second bound the rest of the packet stays,
/// and a reader drops it. The trace marks both.
const MAX_TAKEN_ALONG: usize = 16;

impl CentralBuffer {
    /// Tells whether a chunk that is not there was probably overwritten: the ring has overwritten
    /// some, and this one is not newer than those of its sequence that came. The buffer may have
    /// forgotten the sequence with its last chunk.
    pub(super) fn has_overwritten(&self, sequence: Option<u32>, chunk_id: u32) -> bool {
        let has_come = || {
            let Some(sequence) = sequence.map(|slot| self.sequences.get(slot)) else { return true };
            let newest = sequence.chunks().back().map(|newest| newest.id);
            let newest = newest.or_else(|| sequence.consumed.map(|last| last.id));
            newest.is_none_or(|newest| !is_before(newest, chunk_id))
        };
        !self.read_only && self.stats.chunks_overwritten > 0 && has_come()
    }

    /// Erasing read: consumes a sequence up to and including the chunk at `offset`, and the rest of
    /// its last packet in later chunks. Returns no packets and waits for nothing. If too many
    /// chunks come before it, only this chunk is erased.
    pub(super) fn erase_through(&mut self, slot: u32, offset: usize) {
        let first = self.sequences.get(slot).chunks().front();
        if first.is_some_and(|first| first.offset as usize != offset) {
            #[expect(clippy::cast_possible_truncation, reason = "a buffer is smaller than 2^32 bytes")]
            let chunk = record::load_chunk(&self.data, offset as u32);
            let before = self.sequences.count_before(slot, chunk.chunk_id, MAX_TAKEN_ALONG + 1);
            if before > MAX_TAKEN_ALONG {
                return self.erase_alone(slot, offset, &chunk);
            }
        }
        let mut rest = MAX_TAKEN_ALONG;
        while let Record::Chunk(_) = record::load(&self.data, offset) {
            self.erase_first_chunk(slot, &mut rest);
        }
    }

    /// Erases a chunk between others of its sequence. A reader finds the gap and marks it. After
    /// the newest chunk there is no gap yet, and perhaps never, so the next packet is marked
    /// although it comes before.
    #[cold]
    fn erase_alone(&mut self, slot: u32, offset: usize, chunk: &ChunkRecord) {
        let (has_unread, visited) = chunk.has_unread(&self.data, offset);
        self.work += 1 + visited;
        if has_unread {
            self.count_overwritten(chunk);
        }
        let is_newest = self.sequences.get(slot).chunks().back().is_some_and(|newest| newest.id == chunk.chunk_id);
        if is_newest {
            if has_unread {
                self.lose(slot, loss::PRESENT | loss::OVERWRITE);
            }
            self.lose_with(slot, chunk);
        }
        self.sequences.remove_chunk(slot, chunk.chunk_id);
        self.free_record(offset, chunk);
    }

    /// Erases also up to `rest` chunks in which its last packet continues.
    fn erase_first_chunk(&mut self, slot: u32, rest: &mut usize) {
        let Some(first) = self.sequences.get(slot).chunks().front() else {
            unreachable!("its sequence lists a chunk that is stored")
        };
        let chunk = record::load_chunk(&self.data, first.offset);
        let mut continues = !chunk.is_read() && chunk.has(LAST_CONTINUES);
        let (has_unread, visited) = chunk.has_unread(&self.data, first.offset as usize);
        self.work += 1 + visited;
        if has_unread {
            self.lose_overwritten(slot, &chunk);
        } else {
            let lost = self.sequences.get(slot).lost_before(&chunk);
            self.lose(slot, lost);
        }
        self.forget_first_chunk(slot, first.offset, &chunk);

        let mut expected_id = first.id;
        while continues && *rest > 0 {
            *rest -= 1;
            self.work += 1;
            let Some(next) = self.sequences.get(slot).chunks().front() else { return };
            expected_id = expected_id.wrapping_add(1);
            let mut chunk = record::load_chunk(&self.data, next.offset);
            if next.id != expected_id {
                return;
            }
            if chunk.is_empty() {
                if chunk.has(INCOMPLETE) {
                    return;
                }
                self.forget_first_chunk(slot, next.offset, &chunk);
                continue;
            }
            if !chunk.has(FIRST_CONTINUES) || chunk.read != 0 {
                return;
            }
            let end = chunk.fragment(&self.data, next.offset as usize, 0).map_or(usize::MAX, |fragment| fragment.end());
            if !chunk.ends_at(end) {
                chunk.read = u16::try_from(end).unwrap_or(chunk.available);
                record::store_chunk(&mut self.data, next.offset as usize, &chunk);
                return;
            }
            continues = chunk.has(LAST_CONTINUES);
            chunk.read = chunk.available;
            record::store_chunk(&mut self.data, next.offset as usize, &chunk);
            if chunk.available > 0 {
                self.lose_overwritten(slot, &chunk);
            }
            if chunk.has(INCOMPLETE) {
                return;
            }
            self.forget_first_chunk(slot, next.offset, &chunk);
        }
    }

    fn lose_overwritten(&mut self, slot: u32, chunk: &ChunkRecord) {
        self.count_overwritten(chunk);
        self.lose(slot, loss::PRESENT | loss::OVERWRITE);
    }

    fn count_overwritten(&mut self, chunk: &ChunkRecord) {
        self.stats.chunks_overwritten += 1;
        self.stats.bytes_overwritten += chunk.size() as u64;
    }
}
