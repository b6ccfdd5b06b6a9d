//! Packets come out, or are given up (`docs/spec/trace-buffer.md §9, §11, §12`).

use esatto_shm::planted;

use super::record::{self, ChunkRecord, HEADER, INCOMPLETE, LAST_CONTINUES, NEEDS_PATCHING, Record};
use super::record::{ABORTED, CORRUPTED, FIRST_CONTINUES};
use super::sequence::Consumed;
use super::{CentralBuffer, Packet, loss};

/// Where a reading pass is: a record, from the write position around to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    at: usize,
    /// It went around the end of the memory.
    wrapped: bool,
}

/// What one step at the oldest chunk of a sequence did.
enum Step {
    /// A packet is in `ranges`, with these loss bits.
    Packet(u32),
    /// Something was consumed that is not a packet.
    Consumed,
    /// The sequence waits for data or patches.
    Waits,
}

impl CentralBuffer {
    /// Starts a pass from the oldest record; sequences that waited are tried again.
    pub fn begin_read(&mut self) {
        self.pass += 1;
        self.cursor = Some(Cursor { at: self.write, wrapped: false });
    }

    /// The next packet, or `None` when every sequence is exhausted or waits (and before [`begin_read`](Self::begin_read), and after a
    /// [`copy`](Self::copy)).
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let (slot, loss) = loop {
            let chunk = self.next_record()?;
            let slot = chunk.slot;
            if self.sequences.get(slot).stalled_in == self.pass {
                self.leave_record(&chunk);
                continue;
            }
            match self.step(slot) {
                Step::Packet(loss) => break (slot, loss),
                // The record may be padding now, or still hold packets.
                Step::Consumed => {}
                Step::Waits => {
                    self.sequences.get_mut(slot).stalled_in = self.pass;
                    self.leave_record(&chunk);
                }
            }
        };
        let sequence = self.sequences.get(slot);
        Some(Packet {
            producer: sequence.producer,
            writer: sequence.writer,
            identity: sequence.identity,
            loss,
            data: &self.data,
            ranges: &self.ranges,
        })
    }

    /// The chunk at the cursor or the first one behind it. How far padding reaches is noted, so that passes stay short.
    fn next_record(&mut self) -> Option<ChunkRecord> {
        let mut cursor = self.cursor?;
        let found = loop {
            let end = if cursor.wrapped { self.write } else { self.data.len() };
            if cursor.at >= end {
                if cursor.wrapped {
                    break None;
                }
                cursor = Cursor { at: 0, wrapped: true };
                continue;
            }
            match record::load(&self.data, cursor.at) {
                Record::Chunk(chunk) => break Some(chunk),
                Record::Padding { run: known, .. } => {
                    let mut run = known;
                    while cursor.at + run < end {
                        match record::load(&self.data, cursor.at + run) {
                            Record::Padding { run: more, .. } => run += more,
                            Record::Chunk(_) => break,
                        }
                    }
                    if run != known {
                        record::store_run(&mut self.data, cursor.at, run);
                    }
                    cursor.at += run;
                }
            }
        };
        self.cursor = found.map(|_| cursor);
        found
    }

    fn leave_record(&mut self, chunk: &ChunkRecord) {
        if let Some(cursor) = &mut self.cursor {
            cursor.at += chunk.size();
        }
    }

    /// Consumes one thing of the oldest chunk of a sequence.
    fn step(&mut self, slot: u32) -> Step {
        let sequence = self.sequences.get(slot);
        let Some(&first) = sequence.chunks.front() else { return Step::Waits };
        let mut chunk = record::load_chunk(&self.data, first.offset);
        let lost = sequence.lost_before(&chunk);
        if chunk.is_read() {
            if chunk.has(INCOMPLETE) && !planted!("incomplete-left") {
                return Step::Waits;
            }
            self.lose(slot, lost);
            self.leave_first_chunk(slot);
            return Step::Consumed;
        }
        let Ok(fragment) = chunk.fragment(&self.data, first.offset as usize, chunk.read.into()) else {
            self.lose(slot, lost | loss::PRESENT | loss::CHUNK_CORRUPTED);
            self.stats.abi_violations += 1;
            self.consume(first.offset, &mut chunk, usize::MAX);
            return Step::Consumed;
        };
        let is_last = chunk.ends_at(fragment.end());
        if chunk.read == 0 && chunk.has(FIRST_CONTINUES) && !planted!("orphan-returned") {
            self.lose(slot, lost | loss::PRESENT | loss::ORPHAN_CONTINUATION);
            self.consume(first.offset, &mut chunk, fragment.end());
            return Step::Consumed;
        }
        if is_last && chunk.has(NEEDS_PATCHING) && !planted!("unpatched-returned") {
            return Step::Waits;
        }
        self.ranges.clear();
        self.add_range(first.offset, fragment);
        if is_last && chunk.has(LAST_CONTINUES) {
            return self.reassemble(slot, lost);
        }
        self.lose(slot, lost);
        self.consume(first.offset, &mut chunk, fragment.end());
        self.take_packet(slot)
    }

    /// The packet whose beginning is the last fragment of the oldest chunk: looks for the rest of it.
    fn reassemble(&mut self, slot: u32, lost: u32) -> Step {
        let mut expected_id = self.sequences.get(slot).chunks[0].id;
        let mut index = 1;
        let (failure, whole_chunks) = loop {
            let Some(&next) = self.sequences.get(slot).chunks.get(index) else {
                self.stats.readaheads_failed += 1;
                return Step::Waits;
            };
            expected_id = expected_id.wrapping_add(1);
            if next.id != expected_id {
                break (loss::REASSEMBLY_GAP, index);
            }
            let mut chunk = record::load_chunk(&self.data, next.offset);
            if chunk.is_empty() {
                if chunk.has(INCOMPLETE) {
                    self.stats.readaheads_failed += 1;
                    return Step::Waits;
                }
                index += 1;
                continue;
            }
            if !chunk.has(FIRST_CONTINUES) || chunk.read != 0 {
                break (loss::REASSEMBLY_BROKEN_CHAIN, index);
            }
            if chunk.available == 0 {
                // Nothing but a loss; leaving the chunk tells which.
                break (0, index + 1);
            }
            if chunk.has(NEEDS_PATCHING) {
                self.stats.readaheads_failed += 1;
                return Step::Waits;
            }
            let Ok(fragment) = chunk.fragment(&self.data, next.offset as usize, 0) else {
                self.stats.abi_violations += 1;
                self.consume(next.offset, &mut chunk, usize::MAX);
                break (loss::CHUNK_CORRUPTED, index);
            };
            self.add_range(next.offset, fragment);
            if chunk.ends_at(fragment.end()) && chunk.has(LAST_CONTINUES) {
                index += 1;
                continue;
            }
            self.lose(slot, lost);
            for _ in 0..index {
                self.leave_first_chunk(slot);
            }
            self.consume(next.offset, &mut chunk, fragment.end());
            self.stats.readaheads_succeeded += 1;
            return self.take_packet(slot);
        };
        self.stats.readaheads_failed += 1;
        for _ in 0..whole_chunks {
            self.leave_first_chunk(slot);
        }
        self.lose(slot, lost | failure | if failure == 0 { 0 } else { loss::PRESENT });
        Step::Consumed
    }

    /// The packet in `ranges`, unless it is empty.
    fn take_packet(&mut self, slot: u32) -> Step {
        if self.ranges.is_empty() {
            return Step::Consumed;
        }
        let loss = &mut self.sequences.get_mut(slot).loss;
        if planted!("mark-repeated") {
            return Step::Packet(*loss);
        }
        Step::Packet(core::mem::take(loss))
    }

    fn add_range(&mut self, offset: u32, fragment: super::fragment::Fragment) {
        if fragment.len > 0 {
            let start = offset as usize + HEADER + fragment.start;
            // Both are within a buffer smaller than 2^32 bytes.
            self.ranges.push((start as u32, fragment.len as u32));
        }
    }

    fn lose(&mut self, slot: u32, reasons: u32) {
        if reasons != 0 {
            self.sequences.get_mut(slot).loss |= reasons;
            self.sequences.hand_down_loss(slot);
        }
    }

    /// Moves the read position of a stored chunk to `to` bytes of its payload, or to its end.
    fn consume(&mut self, offset: u32, chunk: &mut ChunkRecord, to: usize) {
        chunk.read = u16::try_from(to).unwrap_or(u16::MAX).min(chunk.available);
        if chunk.is_read() {
            self.stats.chunks_read += 1;
            self.stats.bytes_read += chunk.size() as u64;
        }
        record::store_chunk(&mut self.data, offset as usize, chunk);
    }

    /// The oldest chunk of a sequence is done with: it becomes free space.
    fn leave_first_chunk(&mut self, slot: u32) {
        let Some(&first) = self.sequences.get(slot).chunks.front() else { return };
        let mut chunk = record::load_chunk(&self.data, first.offset);
        if !chunk.is_read() {
            self.consume(first.offset, &mut chunk, usize::MAX);
        }
        self.forget_first_chunk(slot, first.offset, &chunk);
    }

    fn forget_first_chunk(&mut self, slot: u32, offset: u32, chunk: &ChunkRecord) {
        self.sequences.pop_chunk(slot);
        record::store_padding(&mut self.data, offset as usize, chunk.size());
        let sequence = self.sequences.get_mut(slot);
        sequence.consumed = Some(Consumed::of(chunk));
        if chunk.has(ABORTED) && !planted!("abort-unmarked") {
            sequence.loss |= loss::PRESENT | loss::WRITER_ABORT;
        }
        if chunk.has(CORRUPTED) {
            sequence.loss |= loss::PRESENT | loss::CHUNK_CORRUPTED;
        }
        self.sequences.hand_down_loss(slot);
    }

    /// The erasing read: consumes a sequence up to and including the chunk at `offset`, and what later chunks hold of
    /// its last packet, without returning or waiting for anything.
    pub(super) fn erase_through(&mut self, slot: u32, offset: usize) {
        while let Record::Chunk(_) = record::load(&self.data, offset) {
            self.erase_first_chunk(slot);
        }
    }

    fn erase_first_chunk(&mut self, slot: u32) {
        let first = self.sequences.get(slot).chunks[0];
        let chunk = record::load_chunk(&self.data, first.offset);
        let mut continues = !chunk.is_read() && chunk.has(LAST_CONTINUES);
        if chunk.has_unread(&self.data, first.offset as usize) {
            self.count_overwritten(slot, &chunk);
        } else {
            let lost = self.sequences.get(slot).lost_before(&chunk);
            self.lose(slot, lost);
        }
        self.forget_first_chunk(slot, first.offset, &chunk);

        let mut expected_id = first.id;
        while continues {
            let Some(&next) = self.sequences.get(slot).chunks.front() else { return };
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
                self.count_overwritten(slot, &chunk);
            }
            if chunk.has(INCOMPLETE) {
                return;
            }
            self.forget_first_chunk(slot, next.offset, &chunk);
        }
    }

    fn count_overwritten(&mut self, slot: u32, chunk: &ChunkRecord) {
        self.stats.chunks_overwritten += 1 + u64::from(planted!("overwritten-counted-twice"));
        self.stats.bytes_overwritten += chunk.size() as u64;
        self.lose(slot, loss::PRESENT | loss::OVERWRITE);
    }
}
