//! Sequences: what the buffer knows of each writer.

use std::collections::{BinaryHeap, HashMap, VecDeque};

use esatto_shm::planted;

use super::record::ChunkRecord;
use super::{Identity, ProducerId, WriterId, loss};

/// Upper limits (inclusive) of the buckets of fragment bytes per chunk; the last bucket has none.
pub const HISTOGRAM_LIMITS: [u64; 10] = [8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384];

/// How many buckets there are.
pub const HISTOGRAM_BUCKETS: usize = HISTOGRAM_LIMITS.len() + 1;

/// Sequences without chunks that are remembered (`docs/spec/trace-buffer.md §11`).
const KEPT_EMPTY_SEQUENCES: usize = 1024;

/// Above so many the oldest are forgotten.
const MAX_EMPTY_SEQUENCES: usize = 1152;

/// Whether chunk id `a` comes before `b`, modulo 2^32.
pub(super) fn is_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// A stored chunk of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) id: u32,
    pub(super) offset: u32,
}

/// The last chunk of a sequence that was read and left, or overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Consumed {
    pub(super) id: u32,
    /// Bytes of its fragments, all consumed.
    pub(super) bytes: u16,
    /// It was still being written, and nothing was heard of it since.
    pub(super) incomplete: bool,
}

/// What a chunk may still have held that was overwritten before its writer was done with it.
const LEFT_INCOMPLETE: u32 = loss::PRESENT | loss::OVERWRITE;

/// One writer's chunks and state.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) producer: ProducerId,
    pub(super) writer: WriterId,
    pub(super) identity: Identity,
    /// Stored chunks, ordered by id; they span less than 2^31.
    pub(super) chunks: VecDeque<Stored>,
    pub(super) consumed: Option<Consumed>,
    /// Loss bits for the next packet.
    pub(super) loss: u32,
    /// The pass in which it met an obstacle.
    pub(super) stalled_in: u64,
    pub(super) counts: [u64; HISTOGRAM_BUCKETS],
    pub(super) sums: [u64; HISTOGRAM_BUCKETS],
    /// Another writer has its id now; what is left of it is read, and then forgotten.
    is_retired: bool,
    /// When it was used last, in copies.
    last_used: u64,
}

impl Sequence {
    /// What is lost in front of its first chunk, known when that is begun.
    ///
    /// A chunk is left incomplete only if it is overwritten while the sequence waits for the rest of it. Until the next one is begun
    /// the rest may still come; then it is too late for it.
    pub(super) fn lost_before(&self, first: &ChunkRecord) -> u32 {
        let Some(last) = self.consumed.filter(|last| first.read == 0 && last.id != first.chunk_id) else { return 0 };
        if first.chunk_id != last.id.wrapping_add(1) {
            return if planted!("gap-unmarked") { 0 } else { loss::PRESENT | loss::READ_GAP };
        }
        if last.incomplete && !planted!("incomplete-unmarked") { LEFT_INCOMPLETE } else { 0 }
    }

    /// Where a chunk is in the list, or would have to be inserted.
    pub(super) fn position(&self, id: u32) -> Result<usize, usize> {
        // Most chunks arrive in order.
        if self.chunks.back().is_none_or(|last| is_before(last.id, id)) {
            return Err(self.chunks.len());
        }
        let at = self.chunks.partition_point(|stored| is_before(stored.id, id));
        match self.chunks.get(at) {
            Some(stored) if stored.id == id => Ok(at),
            _ => Err(at),
        }
    }

    /// Whether the list would still span less than 2^31 ids with this one.
    pub(super) fn is_within_span(&self, id: u32) -> bool {
        match (self.chunks.front(), self.chunks.back()) {
            (Some(first), Some(last)) => {
                let (first, last) = if is_before(id, first.id) { (id, last.id) } else { (first.id, id) };
                first == last || is_before(first, last)
            }
            _ => true,
        }
    }

    /// No more chunk of this writer comes.
    fn give_up_incomplete(&mut self) {
        if let Some(last) = self.consumed.as_mut().filter(|last| last.incomplete) {
            last.incomplete = false;
            self.loss |= LEFT_INCOMPLETE;
        }
    }

    pub(super) fn sample(&mut self, fragment_bytes: usize) {
        let bytes = fragment_bytes as u64;
        let bucket = HISTOGRAM_LIMITS.iter().position(|&limit| bytes <= limit).unwrap_or(HISTOGRAM_LIMITS.len());
        self.counts[bucket] += 1;
        self.sums[bucket] += bytes;
    }
}

/// All sequences of a buffer, in slots that records can name.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    slots: Vec<Option<Sequence>>,
    free: Vec<u32>,
    by_writer: HashMap<(ProducerId, WriterId), u32>,
    /// Who was looked for last, and where it is: a commit has chunk after chunk of one writer.
    last_found: Option<((ProducerId, WriterId), u32)>,
    /// How many have no chunk.
    empty: usize,
    copies: u64,
}

impl Sequences {
    pub(super) fn find(&mut self, producer: ProducerId, writer: WriterId) -> Option<u32> {
        let key = (producer, writer);
        match self.last_found {
            Some((last, slot)) if last == key => Some(slot),
            _ => {
                let slot = *self.by_writer.get(&key)?;
                self.last_found = Some((key, slot));
                Some(slot)
            }
        }
    }

    /// Whether some sequences are to be forgotten.
    pub(super) fn is_crowded(&self) -> bool {
        self.empty > MAX_EMPTY_SEQUENCES
    }

    /// The sequence of a writer that commits a chunk; new ones are made, old empty ones forgotten.
    pub(super) fn touch(&mut self, producer: ProducerId, writer: WriterId, identity: Identity) -> u32 {
        self.copies += 1;
        if self.is_crowded() {
            self.forget_oldest();
        }
        let slot = match self.find(producer, writer) {
            Some(slot) => slot,
            None => self.insert(producer, writer, identity),
        };
        self.get_mut(slot).last_used = self.copies;
        slot
    }

    #[cold]
    fn insert(&mut self, producer: ProducerId, writer: WriterId, identity: Identity) -> u32 {
        let sequence = Sequence {
            producer,
            writer,
            identity,
            chunks: VecDeque::new(),
            consumed: None,
            loss: 0,
            stalled_in: 0,
            counts: [0; HISTOGRAM_BUCKETS],
            sums: [0; HISTOGRAM_BUCKETS],
            is_retired: false,
            last_used: self.copies,
        };
        self.empty += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(sequence);
                slot
            }
            None => {
                self.slots.push(Some(sequence));
                u32::try_from(self.slots.len() - 1).expect("a sequence has 16 bytes in the buffer, or is one of 1152")
            }
        };
        self.by_writer.insert((producer, writer), slot);
        slot
    }

    #[cold]
    fn forget_oldest(&mut self) {
        // A heap sorts in little code, and this is rare.
        let mut empty: BinaryHeap<(u64, u32)> = BinaryHeap::with_capacity(self.empty);
        for (slot, sequence) in (0u32..).zip(&self.slots) {
            if let Some(sequence) = sequence.as_ref().filter(|sequence| sequence.chunks.is_empty()) {
                empty.push((sequence.last_used, slot));
            }
        }
        let empty = empty.into_sorted_vec();
        self.last_found = None;
        let surplus = empty.len().saturating_sub(KEPT_EMPTY_SEQUENCES);
        for &(_, slot) in &empty[..surplus] {
            if let Some(sequence) = self.slots[slot as usize].take() {
                let key = (sequence.producer, sequence.writer);
                if self.by_writer.get(&key) == Some(&slot) {
                    self.by_writer.remove(&key);
                }
                self.free.push(slot);
                self.empty -= 1;
            }
        }
    }

    /// What this writer commits from now on is another writer's, under the same id.
    pub(super) fn renew(&mut self, producer: ProducerId, writer: WriterId) {
        let Some(slot) = self.find(producer, writer) else { return };
        let sequence = self.get_mut(slot);
        if sequence.chunks.is_empty() {
            sequence.give_up_incomplete();
            sequence.consumed = None;
            return;
        }
        sequence.is_retired = true;
        let (identity, counts, sums) = (sequence.identity, sequence.counts, sequence.sums);
        self.last_found = None;
        let slot = self.insert(producer, writer, identity);
        let heir = self.get_mut(slot);
        (heir.counts, heir.sums) = (counts, sums);
    }

    /// The producer is gone; another one may get its id.
    pub(super) fn retire_producer(&mut self, producer: ProducerId) {
        self.last_found = None;
        self.by_writer.retain(|&(id, _), _| id != producer);
    }

    /// A loss that a retired sequence cannot tell any more is told by the one that follows it.
    pub(super) fn hand_down_loss(&mut self, slot: u32) {
        let sequence = self.get_mut(slot);
        if !sequence.is_retired || !sequence.chunks.is_empty() {
            return;
        }
        sequence.give_up_incomplete();
        if sequence.loss != 0 {
            let loss = core::mem::take(&mut sequence.loss);
            let key = (sequence.producer, sequence.writer);
            if let Some(&heir) = self.by_writer.get(&key) {
                self.get_mut(heir).loss |= loss;
            }
        }
    }

    pub(super) fn get(&self, slot: u32) -> &Sequence {
        self.slots[slot as usize].as_ref().expect("records name sequences that exist")
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Sequence {
        self.slots[slot as usize].as_mut().expect("records name sequences that exist")
    }

    /// Puts a chunk into a sequence's list.
    pub(super) fn insert_chunk(&mut self, slot: u32, at: usize, stored: Stored) {
        let sequence = self.get_mut(slot);
        sequence.chunks.insert(at, stored);
        if sequence.chunks.len() == 1 {
            self.empty -= 1;
        }
    }

    /// Appends a chunk that is newer than all others, as [`touch`](Self::touch) and [`insert_chunk`](Self::insert_chunk) would.
    pub(super) fn push_chunk(&mut self, slot: u32, id: u32, offset: usize, fragment_bytes: usize) {
        self.copies += 1;
        let last_used = self.copies;
        let sequence = self.get_mut(slot);
        sequence.last_used = last_used;
        sequence.sample(fragment_bytes);
        let offset = u32::try_from(offset).expect("a buffer is smaller than 2^32 bytes");
        sequence.chunks.push_back(Stored { id, offset });
        if sequence.chunks.len() == 1 {
            self.empty -= 1;
        }
    }

    /// Takes the oldest chunk out of a sequence's list.
    pub(super) fn pop_chunk(&mut self, slot: u32) {
        let sequence = self.get_mut(slot);
        sequence.chunks.pop_front();
        if sequence.chunks.is_empty() {
            self.empty += 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.slots.iter().flatten()
    }

    /// Those that stand for their writer.
    pub(super) fn current(&self) -> impl Iterator<Item = &Sequence> {
        self.iter().filter(|sequence| !sequence.is_retired)
    }

    pub(super) fn clear_histograms(&mut self) {
        for sequence in self.slots.iter_mut().flatten() {
            sequence.counts = [0; HISTOGRAM_BUCKETS];
            sequence.sums = [0; HISTOGRAM_BUCKETS];
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }
}
