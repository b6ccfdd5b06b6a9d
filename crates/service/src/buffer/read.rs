//! Reading packets, and dropping those that are broken (`docs/spec/trace-buffer.md §9, §11, §12`).

use super::chunk_list::{Stored, is_before};
use super::fragment::Fragment;
use super::record::{self, ChunkRecord, HEADER, INCOMPLETE, LAST_CONTINUES, NEEDS_PATCHING};
use super::record::{ABORTED, CORRUPTED, FIRST_CONTINUES};
use super::sequence::{Begun, Consumed, Key};
use super::{CentralBuffer, Packet, loss};

/// Highest cost of a packet: its bytes, and [`FRAGMENT_COST`] for each chunk that contains a part
/// of it.
///
/// Protects consumers and readers of files. Over a socket no consumer accepts 64 MiB at once, and
/// no reader accepts a packet of 256 MiB. A reader drops a larger packet as soon as this much of it
/// is there. The next packet of its sequence is marked, and `abi_violations` counts it.
pub const MAX_PACKET_COST: usize = 60 << 20;

/// Cost of each chunk of a packet beside the bytes.
///
/// Protects the event loop. It is the size of the smallest chunk of shared memory, so that a packet
/// within [`MAX_PACKET_COST`] has no more than 245,760 pieces.
pub const FRAGMENT_COST: usize = 256;

/// Pieces of a packet for which the buffer keeps memory.
const KEPT_RANGES: usize = 4096;

/// Position of a read pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pass {
    /// No pass is under way.
    Over,
    /// It begins with the first sequence.
    Begins,
    /// It reads this sequence.
    At(Turn),
}

/// The turn of a sequence in a pass. It ends at the chunk that was newest when the turn began. So a
/// writer that is faster than the reader does not keep the pass for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    key: Key,
    slot: u32,
    until: u32,
}

/// Next result of a read pass.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// Every sequence is exhausted or waits, and the pass is over.
    Exhausted,
    /// The allowed work is done, and the pass can continue.
    OutOfWork,
}

/// Result of a step at the oldest chunk of a sequence.
enum Step {
    /// A packet is in `ranges`, with these loss bits.
    Packet(u32),
    /// The step consumed something that is not a packet.
    Consumed,
    /// The sequence waits for data or patches.
    Waits {
        /// For the rest of a packet over several chunks.
        for_rest: bool,
    },
}

/// Result of a search through the chunks of a packet.
enum Rest {
    /// The packet is not complete yet.
    IsMissing,
    /// The packet ends in this chunk, at this many bytes of its payload.
    EndsIn { last: Stored, end: usize },
    /// There is no packet.
    IsBroken { reason: u32, corrupt: Option<Stored> },
}

impl CentralBuffer {
    /// Starts a pass: from the first sequence, in the order of producer and writer.
    pub fn begin_read(&mut self) {
        self.stats.readaheads_failed += self.sequences.waiting_for_rest();
        self.pass = Pass::Begins;
    }

    /// Continues the interrupted pass, or starts one if the last pass is over.
    pub fn resume_read(&mut self) {
        if matches!(self.pass, Pass::Over) {
            self.begin_read();
        }
    }

    /// Returns the next packet, or `None` if every sequence is exhausted or waits (and before
    /// [`begin_read`](Self::begin_read)).
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        match self.next_within(u64::MAX) {
            Next::Packet(packet) => Some(packet),
            Next::Exhausted | Next::OutOfWork => None,
        }
    }

    /// Returns the next packet, if the search takes no more than this [`work`](Self::work), or
    /// little more.
    pub fn next_within(&mut self, most_work: u64) -> Next<'_> {
        let end = self.work().saturating_add(most_work);
        let (slot, loss) = loop {
            if self.work() >= end {
                return Next::OutOfWork;
            }
            let Some(slot) = self.next_turn() else { return Next::Exhausted };
            match self.step(slot) {
                Step::Packet(loss) => break (slot, loss),
                Step::Consumed => {}
                Step::Waits { for_rest } => self.sequences.put_to_wait(slot, for_rest),
            }
        };
        let sequence = self.sequences.get(slot);
        Next::Packet(Packet {
            producer: sequence.producer,
            writer: sequence.writer,
            identity: sequence.identity,
            loss,
            data: &self.data,
            ranges: &self.ranges,
        })
    }

    /// Returns the sequence whose turn it is.
    #[inline]
    fn next_turn(&mut self) -> Option<u32> {
        let before = match self.pass {
            Pass::Over => return None,
            Pass::Begins => None,
            Pass::At(turn) => {
                let first = self.sequences.ready_at(turn.key, turn.slot).and_then(|sequence| sequence.chunks().front());
                if first.is_some_and(|first| !is_before(turn.until, first.id)) {
                    return Some(turn.slot);
                }
                Some(turn.key)
            }
        };
        // Another round reads the data that came after the pass.
        let mut next = self.sequences.next_ready(before);
        if next.is_none() && before.is_some() {
            next = self.sequences.next_ready(None);
        }
        let Some((key, slot)) = next else {
            self.pass = Pass::Over;
            return None;
        };
        let until = self.sequences.get(slot).chunks().back()?.id;
        self.pass = Pass::At(Turn { key, slot, until });
        Some(slot)
    }

    /// Consumes one part of the oldest chunk of a sequence.
    fn step(&mut self, slot: u32) -> Step {
        self.work += 1;
        let sequence = self.sequences.get(slot);
        let Some(first) = sequence.chunks().front() else { return Step::Waits { for_rest: false } };
        let mut chunk = record::load_chunk(&self.data, first.offset);
        let lost = sequence.lost_before(&chunk);
        if chunk.is_read() {
            if chunk.has(INCOMPLETE) {
                return Step::Waits { for_rest: false };
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
        if chunk.read == 0 && chunk.has(FIRST_CONTINUES) {
            self.lose(slot, lost | loss::PRESENT | loss::ORPHAN_CONTINUATION);
            self.consume(first.offset, &mut chunk, fragment.end());
            return Step::Consumed;
        }
        if is_last && chunk.has(NEEDS_PATCHING) {
            return Step::Waits { for_rest: false };
        }
        if is_last && chunk.has(LAST_CONTINUES) {
            return self.reassemble(slot, lost, fragment);
        }
        self.begin_ranges(first.offset, fragment);
        self.lose(slot, lost);
        self.consume(first.offset, &mut chunk, fragment.end());
        self.take_packet(slot)
    }

    /// Searches for the rest of the packet that begins in the last fragment of the oldest chunk.
    fn reassemble(&mut self, slot: u32, lost: u32, fragment: Fragment) -> Step {
        let sequence = self.sequences.get(slot);
        let Some(first) = sequence.chunks().first() else { return Step::Waits { for_rest: false } };
        let id = first.chunk.id;
        let start = Begun { first: id, last: first, chunks: 1, cost: FRAGMENT_COST + fragment.len };
        // An earlier search found no end: continue from there.
        if let Some(mut begun) = sequence.begun.filter(|begun| begun.first == id) {
            if let Rest::IsMissing = self.look_for_rest(slot, &mut begun, false) {
                return self.wait_for_rest(slot, begun);
            }
        }
        self.begin_ranges(first.chunk.offset, fragment);
        let mut begun = start;
        let (reason, corrupt) = match self.look_for_rest(slot, &mut begun, true) {
            Rest::IsMissing => return self.wait_for_rest(slot, begun),
            Rest::EndsIn { last, end } => {
                self.lose(slot, lost);
                self.leave_chunks(slot, begun.chunks);
                let mut chunk = record::load_chunk(&self.data, last.offset);
                self.consume(last.offset, &mut chunk, end);
                self.stats.readaheads_succeeded += 1;
                return self.take_packet(slot);
            }
            Rest::IsBroken { reason, corrupt } => (reason, corrupt),
        };
        self.stats.readaheads_failed += 1;
        if let Some(corrupt) = corrupt {
            let mut chunk = record::load_chunk(&self.data, corrupt.offset);
            self.consume(corrupt.offset, &mut chunk, usize::MAX);
        }
        // Only a reader sees both.
        self.stats.abi_violations += u64::from(corrupt.is_some() || begun.cost > MAX_PACKET_COST);
        self.leave_chunks(slot, begun.chunks);
        self.lose(slot, lost | reason | if reason == 0 { 0 } else { loss::PRESENT });
        Step::Consumed
    }

    fn wait_for_rest(&mut self, slot: u32, begun: Begun) -> Step {
        self.stats.readaheads_failed += 1;
        self.sequences.get_mut(slot).begun = Some(begun);
        Step::Waits { for_rest: true }
    }

    fn leave_chunks(&mut self, slot: u32, chunks: u32) {
        for _ in 0..chunks {
            self.leave_first_chunk(slot);
        }
    }

    /// Visits the chunks of a packet, from the last one that is known.
    fn look_for_rest(&mut self, slot: u32, begun: &mut Begun, collects: bool) -> Rest {
        let broken = |reason| Rest::IsBroken { reason, corrupt: None };
        loop {
            self.work += 2;
            let Some(next) = self.sequences.get(slot).chunks().after(begun.last) else { return Rest::IsMissing };
            let stored = next.chunk;
            if stored.id != begun.last.chunk.id.wrapping_add(1) {
                return broken(loss::REASSEMBLY_GAP);
            }
            let chunk = record::load_chunk(&self.data, stored.offset);
            if chunk.is_empty() {
                if chunk.has(INCOMPLETE) {
                    return Rest::IsMissing;
                }
                begun.cost += FRAGMENT_COST;
            } else {
                if !chunk.has(FIRST_CONTINUES) || chunk.read != 0 {
                    return broken(loss::REASSEMBLY_BROKEN_CHAIN);
                }
                if chunk.available == 0 {
                    // The chunk contains only a loss. Leaving the chunk tells which one.
                    begun.chunks += 1;
                    return broken(0);
                }
                if chunk.has(NEEDS_PATCHING) {
                    return Rest::IsMissing;
                }
                let Ok(fragment) = chunk.fragment(&self.data, stored.offset as usize, 0) else {
                    return Rest::IsBroken { reason: loss::CHUNK_CORRUPTED, corrupt: Some(stored) };
                };
                begun.cost += FRAGMENT_COST + fragment.len;
                if begun.cost <= MAX_PACKET_COST {
                    if collects {
                        self.add_range(stored.offset, fragment);
                    }
                    if !(chunk.ends_at(fragment.end()) && chunk.has(LAST_CONTINUES)) {
                        return Rest::EndsIn { last: stored, end: fragment.end() };
                    }
                }
            }
            if begun.cost > MAX_PACKET_COST {
                return broken(loss::PRESENT);
            }
            (begun.last, begun.chunks) = (next, begun.chunks + 1);
        }
    }

    /// Returns the packet in `ranges`, unless it is empty.
    fn take_packet(&mut self, slot: u32) -> Step {
        if self.ranges.is_empty() {
            return Step::Consumed;
        }
        let lost = core::mem::take(&mut self.sequences.get_mut(slot).loss);
        self.losses_told += u64::from(lost != 0);
        Step::Packet(lost)
    }

    fn begin_ranges(&mut self, offset: u32, fragment: Fragment) {
        self.ranges.clear();
        if self.ranges.capacity() > KEPT_RANGES {
            self.ranges = Vec::new();
        }
        self.add_range(offset, fragment);
    }

    #[expect(clippy::cast_possible_truncation, reason = "both are within a buffer smaller than 2^32 bytes")]
    fn add_range(&mut self, offset: u32, fragment: Fragment) {
        if fragment.len > 0 {
            let start = offset as usize + HEADER + fragment.start;
            self.ranges.push((start as u32, fragment.len as u32));
        }
    }

    pub(super) fn lose(&mut self, slot: u32, reasons: u32) {
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

    /// Removes the oldest chunk of a sequence, which becomes free space.
    fn leave_first_chunk(&mut self, slot: u32) {
        self.work += 1;
        let Some(first) = self.sequences.get(slot).chunks().front() else { return };
        let mut chunk = record::load_chunk(&self.data, first.offset);
        if !chunk.is_read() {
            self.consume(first.offset, &mut chunk, usize::MAX);
        }
        self.forget_first_chunk(slot, first.offset, &chunk);
    }

    pub(super) fn forget_first_chunk(&mut self, slot: u32, offset: u32, chunk: &ChunkRecord) {
        self.sequences.pop_chunk(slot);
        self.free_record(offset as usize, chunk);
        let sequence = self.sequences.get_mut(slot);
        sequence.consumed = Some(Consumed::of(chunk));
        self.lose_with(slot, chunk);
        self.sequences.hand_down_loss(slot);
    }

    /// Lets the next packet tell a loss that follows a chunk's fragments.
    pub(super) fn lose_with(&mut self, slot: u32, chunk: &ChunkRecord) {
        let sequence = self.sequences.get_mut(slot);
        if chunk.has(ABORTED) {
            sequence.loss |= loss::PRESENT | loss::WRITER_ABORT;
        }
        if chunk.has(CORRUPTED) {
            sequence.loss |= loss::PRESENT | loss::CHUNK_CORRUPTED;
        }
    }
}
