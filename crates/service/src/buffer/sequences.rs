//! All sequences of a buffer: which ones it remembers, and which ones readers visit next.

use core::ops::Bound;

use esatto_map::LargeMap;

use super::chunk_list::{ChunkList, Stored};
use super::histogram::Histogram;
use super::sequence::{Begun, Key, Readiness, Sequence};
use super::{Identity, ProducerId, WriterId, work};

/// Highest number of sequences without chunks that a buffer remembers (`docs/spec/trace-buffer.md
/// §11`).
///
/// Protects memory. When there are an eighth more, the buffer forgets the oldest, first those of
/// writers that have ended, then those of the producers that have the most. A forgotten writer that
/// continues is not protected against duplicates, and its next packet is marked as following a
/// loss.
pub const MAX_EMPTY_SEQUENCES: usize = 1024;

/// Sequences with data that cost a buffer nothing beside their records. A buffer has one more for
/// each of its [`BYTES_PER_FREE_SEQUENCE`] bytes.
///
/// While more sequences have data, a record takes at least [`MIN_CROWDED_RECORD`] bytes. So the
/// space of the buffer pays for the memory of its sequences.
pub const FREE_SEQUENCES: usize = 1024;

/// Bytes of a buffer for each of which one more sequence is free; see [`FREE_SEQUENCES`].
pub const BYTES_PER_FREE_SEQUENCE: usize = 4096;

/// Smallest record while very many sequences have data.
///
/// Protects memory, because a sequence takes some 300 bytes outside of the buffer. At the bound
/// older data is overwritten sooner (or a DISCARD buffer is full sooner), which its counters tell.
pub const MIN_CROWDED_RECORD: usize = 512;

/// All sequences of a buffer, in slots that records can name.
#[derive(Clone, Debug)]
pub(super) struct Sequences {
    slots: Vec<Option<Sequence>>,
    free: Vec<u32>,
    by_writer: LargeMap<(ProducerId, WriterId), u32>,
    /// The last result of a search, because a commit has chunk after chunk of one writer.
    last_found: Option<((ProducerId, WriterId), u32)>,
    /// Slots of the sequences without chunks, in no order.
    empty: Vec<u32>,
    /// Sequences with chunks that changed since they were read.
    ready: LargeMap<Key, u32>,
    /// Number of sequences that wait for the rest of a packet and are not in `ready`.
    waiting_for_rest: u64,
    copies: u64,
    births: u64,
    /// Some sequences without chunks were forgotten.
    has_forgotten: bool,
    max_free: usize,
    /// Visits, comparisons and moves.
    work: u64,
}

impl Sequences {
    /// Creates the sequences of a buffer with this many bytes.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_writer: LargeMap::new(),
            last_found: None,
            empty: Vec::new(),
            ready: LargeMap::new(),
            waiting_for_rest: 0,
            copies: 0,
            births: 0,
            has_forgotten: false,
            max_free: FREE_SEQUENCES + capacity / BYTES_PER_FREE_SEQUENCE,
            work: 0,
        }
    }

    pub(super) fn work(&self) -> u64 {
        self.work
    }

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

    /// Tells whether the buffer should forget some sequences.
    pub(super) fn is_crowded(&self) -> bool {
        self.empty.len() > MAX_EMPTY_SEQUENCES + MAX_EMPTY_SEQUENCES / 8
    }

    /// Tells whether so many sequences have data that a record must not be small.
    pub(super) fn has_many_with_data(&self) -> bool {
        self.slots.len() - self.free.len() - self.empty.len() > self.max_free
    }

    /// Returns the sequence of a writer that commits a chunk. Makes a new one if needed, and
    /// forgets old empty ones.
    pub(super) fn touch(&mut self, producer: ProducerId, writer: WriterId, identity: Identity) -> u32 {
        self.copies += 1;
        if self.is_crowded() {
            self.forget_oldest();
        }
        let slot = match self.find(producer, writer) {
            Some(slot) if self.get(slot).identity == identity => slot,
            found => {
                if found.is_some() {
                    // It belongs to a disconnected producer of which a clone held content at that
                    // time.
                    self.retire_producer(producer);
                }
                let slot = self.insert(producer, writer, identity);
                self.get_mut(slot).may_be_known = self.has_forgotten;
                slot
            }
        };
        self.get_mut(slot).last_used = self.copies;
        slot
    }

    /// Makes a sequence without chunks. If there are very many of those, forgets the oldest before.
    #[cold]
    fn insert(&mut self, producer: ProducerId, writer: WriterId, identity: Identity) -> u32 {
        if self.is_crowded() {
            self.forget_oldest();
        }
        self.births += 1;
        let sequence = Sequence {
            producer,
            writer,
            identity,
            chunks: ChunkList::default(),
            consumed: None,
            loss: 0,
            is_broken_off: false,
            begun: None,
            histogram: Histogram::default(),
            readiness: Readiness::Empty,
            is_retired: false,
            is_ended: false,
            may_be_known: false,
            born: self.births,
            last_used: self.copies,
            empty_at: 0,
        };
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
        self.add_empty(slot);
        self.by_writer.insert((producer, writer), slot);
        slot
    }

    fn add_empty(&mut self, slot: u32) {
        self.get_mut(slot).empty_at = u32::try_from(self.empty.len()).expect("as many as slots, at most");
        self.empty.push(slot);
    }

    fn remove_empty(&mut self, slot: u32) {
        let at = self.get(slot).empty_at;
        self.empty.swap_remove(at as usize);
        if let Some(&moved) = self.empty.get(at as usize) {
            self.get_mut(moved).empty_at = at;
        }
    }

    /// Forgets the oldest sequences without chunks, first those of writers that have ended.
    #[cold]
    fn forget_oldest(&mut self) {
        self.work += self.empty.len() as u64;
        let of_ended = self.empty.iter().map(|&slot| (self.get(slot), slot)).filter(|(sequence, _)| sequence.is_ended);
        let mut ended: Vec<(u64, u64, u32)> =
            of_ended.map(|(sequence, slot)| (sequence.last_used, sequence.born, slot)).collect();
        esatto_map::sort(&mut ended);
        ended.truncate(self.empty.len() - MAX_EMPTY_SEQUENCES);
        self.last_found = None;
        for (_, _, slot) in ended {
            self.forget(slot);
        }
        if self.empty.len() > MAX_EMPTY_SEQUENCES {
            self.forget_oldest_of_most();
        }
    }

    /// Forgets the oldest sequences without chunks, but none of a producer that has no more than
    /// its share.
    #[cold]
    fn forget_oldest_of_most(&mut self) {
        self.work += self.empty.len() as u64;
        let mut empty: Vec<(ProducerId, u64, u32)> = self
            .empty
            .iter()
            .map(|&slot| {
                let sequence = self.get(slot);
                (sequence.producer, sequence.last_used, slot)
            })
            .collect();
        esatto_map::sort(&mut empty);
        let counts: Vec<usize> = empty.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
        let share = share(&counts, MAX_EMPTY_SEQUENCES);
        let mut surplus: Vec<(u64, u32)> = empty
            .chunk_by(|a, b| a.0 == b.0)
            .flat_map(|of_one| &of_one[..of_one.len().saturating_sub(share)])
            .map(|&(_, last_used, slot)| (last_used, slot))
            .collect();
        esatto_map::sort(&mut surplus);
        surplus.truncate(self.empty.len() - MAX_EMPTY_SEQUENCES);
        self.has_forgotten |= !surplus.is_empty();
        for (_, slot) in surplus {
            self.forget(slot);
        }
    }

    /// Forgets a sequence without chunks.
    fn forget(&mut self, slot: u32) {
        self.remove_empty(slot);
        if let Some(sequence) = self.slots[slot as usize].take() {
            let key = (sequence.producer, sequence.writer);
            if self.by_writer.get(&key) == Some(&slot) {
                self.by_writer.remove(&key);
            }
            self.free.push(slot);
        }
    }

    /// Notes that a writer has ended.
    pub(super) fn end(&mut self, producer: ProducerId, writer: WriterId) {
        if let Some(slot) = self.find(producer, writer) {
            self.get_mut(slot).is_ended = true;
        }
    }

    /// Gives the id of a writer to another one. Later commits belong to the new writer.
    pub(super) fn renew(&mut self, producer: ProducerId, writer: WriterId) {
        let Some(slot) = self.find(producer, writer) else { return };
        let sequence = self.get_mut(slot);
        if sequence.chunks.is_empty() {
            sequence.give_up_incomplete();
            sequence.consumed = None;
            sequence.may_be_known = false;
            sequence.is_ended = false;
            return;
        }
        sequence.is_retired = true;
        sequence.is_ended = true;
        let (identity, histogram) = (sequence.identity, sequence.histogram.clone());
        self.last_found = None;
        let slot = self.insert(producer, writer, identity);
        self.get_mut(slot).histogram = histogram;
    }

    /// Retires the writers of a producer that has disconnected, because another one may get its id.
    pub(super) fn retire_producer(&mut self, producer: ProducerId) {
        self.last_found = None;
        let all = (producer, WriterId(0))..=(producer, WriterId(u16::MAX));
        while let Some((&key, &slot)) = self.by_writer.range(all.clone()).next() {
            self.by_writer.remove(&key);
            self.get_mut(slot).is_ended = true;
            self.work += 1;
        }
    }

    /// Passes the loss of a retired sequence on to the sequence that follows it.
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

    /// Marks a loss of a writer outside of this buffer.
    pub(super) fn lose(&mut self, producer: ProducerId, writer: WriterId, identity: Identity, loss: u32) {
        let slot = match self.find(producer, writer) {
            Some(slot) => slot,
            None => {
                self.copies += 1;
                self.insert(producer, writer, identity)
            }
        };
        self.work += 1;
        self.get_mut(slot).loss |= loss;
    }

    pub(super) fn get(&self, slot: u32) -> &Sequence {
        self.slots[slot as usize].as_ref().expect("records name sequences that exist")
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Sequence {
        self.slots[slot as usize].as_mut().expect("records name sequences that exist")
    }

    /// Returns the stored chunk of a sequence with this id.
    pub(super) fn find_chunk(&mut self, slot: u32, id: u32) -> Option<Stored> {
        let chunks = &self.get(slot).chunks;
        let (found, work) = (chunks.find(id), chunks.search_work());
        self.work += work;
        found
    }

    /// Puts a chunk into a sequence's list. Returns true if the list had a newer one.
    pub(super) fn insert_chunk(&mut self, slot: u32, stored: Stored) -> bool {
        let sequence = self.get_mut(slot);
        let is_late = sequence.chunks.insert(stored);
        let work = sequence.chunks.search_work();
        self.work += work;
        self.wake(slot);
        is_late
    }

    /// Appends a chunk that is newer than all others, as [`touch`](Self::touch) and
    /// [`insert_chunk`](Self::insert_chunk) would.
    pub(super) fn push_chunk(&mut self, slot: u32, id: u32, offset: usize, fragment_bytes: u16) {
        self.copies += 1;
        let last_used = self.copies;
        let sequence = self.get_mut(slot);
        sequence.last_used = last_used;
        sequence.histogram.sample(fragment_bytes);
        let offset = u32::try_from(offset).expect("a buffer is smaller than 2^32 bytes");
        sequence.chunks.push_back(Stored { id, offset });
        self.wake(slot);
    }

    /// Removes the oldest chunk from a sequence's list.
    pub(super) fn pop_chunk(&mut self, slot: u32) {
        let sequence = self.get_mut(slot);
        sequence.begun = None;
        let moved = sequence.chunks.pop_front();
        let is_empty = sequence.chunks.is_empty();
        self.work += work::of_copy(moved * size_of::<Stored>());
        if is_empty {
            self.leave_readers(slot, Readiness::Empty);
            self.add_empty(slot);
        } else {
            self.wake(slot);
        }
    }

    /// Counts the chunks of a sequence before this id, up to `most`.
    pub(super) fn count_before(&mut self, slot: u32, id: u32, most: usize) -> usize {
        let chunks = &self.get(slot).chunks;
        let (count, work) = (chunks.count_before(id, most), chunks.search_work());
        self.work += work + count as u64;
        count
    }

    /// Removes a chunk from a sequence's list that is not its oldest.
    pub(super) fn remove_chunk(&mut self, slot: u32, id: u32) {
        let sequence = self.get_mut(slot);
        let moved = sequence.chunks.remove(id);
        let is_begun = sequence.has_begun_with(id);
        sequence.begun = sequence
            .begun
            .filter(|_| !is_begun)
            .map(|begun| Begun { last: sequence.chunks.place_of(begun.last.chunk), ..begun });
        let work = sequence.chunks.search_work() + work::of_copy(moved * size_of::<Stored>());
        self.work += work;
        self.wake(slot);
    }

    /// Makes readers visit a sequence with chunks again, because it has changed.
    #[inline]
    pub(super) fn wake(&mut self, slot: u32) {
        if self.get(slot).readiness != Readiness::Ready {
            self.wake_up(slot);
        }
    }

    fn wake_up(&mut self, slot: u32) {
        let sequence = self.get_mut(slot);
        let (before, key) = (sequence.readiness, sequence.key());
        sequence.readiness = Readiness::Ready;
        match before {
            Readiness::Empty => self.remove_empty(slot),
            Readiness::Waits { for_rest } => self.waiting_for_rest -= u64::from(for_rest),
            Readiness::Ready => {}
        }
        self.ready.insert(key, slot);
        self.charge_search();
    }

    /// Notes that a reader found nothing more in a sequence.
    pub(super) fn put_to_wait(&mut self, slot: u32, for_rest: bool) {
        self.leave_readers(slot, Readiness::Waits { for_rest });
        self.waiting_for_rest += u64::from(for_rest);
    }

    fn leave_readers(&mut self, slot: u32, readiness: Readiness) {
        let sequence = self.get_mut(slot);
        let (before, key) = (sequence.readiness, sequence.key());
        sequence.readiness = readiness;
        match before {
            Readiness::Ready => drop(self.ready.remove(&key)),
            Readiness::Waits { for_rest } => self.waiting_for_rest -= u64::from(for_rest),
            Readiness::Empty => {}
        }
        self.charge_search();
    }

    fn charge_search(&mut self) {
        self.work += 1 + u64::from(self.ready.len().checked_ilog2().unwrap_or(0));
    }

    /// Returns the number of sequences that wait for the rest of a packet and that readers do not
    /// visit.
    pub(super) fn waiting_for_rest(&self) -> u64 {
        self.waiting_for_rest
    }

    /// Returns the sequence in this slot, if it still has this key and readers want it.
    pub(super) fn ready_at(&self, key: Key, slot: u32) -> Option<&Sequence> {
        let sequence = self.slots.get(slot as usize)?.as_ref()?;
        (sequence.born == key.born && sequence.readiness == Readiness::Ready).then_some(sequence)
    }

    /// Returns the first ready sequence, or the first one after a key.
    pub(super) fn next_ready(&mut self, after: Option<Key>) -> Option<(Key, u32)> {
        self.charge_search();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.ready.range((from, Bound::Unbounded)).next().map(|(&key, &slot)| (key, slot))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.slots.iter().flatten()
    }

    /// Iterates over the sequences that represent their writers.
    pub(super) fn unsorted(&self) -> impl Iterator<Item = &Sequence> {
        self.iter().filter(|sequence| !sequence.is_retired)
    }

    /// Returns them in the order in which they are read.
    pub(super) fn current(&self) -> Vec<&Sequence> {
        let mut current = self.in_order();
        current.retain(|sequence| !sequence.is_retired);
        current
    }

    /// All in the order in which they are read.
    pub(super) fn in_order(&self) -> Vec<&Sequence> {
        let mut all: Vec<(Key, u32)> = (0..)
            .zip(&self.slots)
            .filter_map(|(slot, sequence)| sequence.as_ref().map(|sequence| (sequence.key(), slot)))
            .collect();
        esatto_map::sort(&mut all);
        all.into_iter().map(|(_, slot)| self.get(slot)).collect()
    }

    /// About as much memory as the sequences and their lists take.
    pub(super) fn bytes(&self) -> usize {
        self.iter().map(|sequence| size_of::<Sequence>() + sequence.chunks.len() * size_of::<Stored>()).sum()
    }

    pub(super) fn clear_histograms(&mut self) {
        for sequence in self.slots.iter_mut().flatten() {
            sequence.histogram = Histogram::default();
        }
    }

    /// Checks that the lists of sequences agree with the sequences.
    pub(super) fn assert_consistent(&self) {
        let mut waiting_for_rest = 0;
        let (mut ready, mut empty) = (0, 0);
        for (slot, sequence) in (0..).zip(&self.slots) {
            let Some(sequence) = sequence else { continue };
            match sequence.readiness {
                Readiness::Empty => {
                    empty += 1;
                    assert_eq!(self.empty[sequence.empty_at as usize], slot);
                }
                Readiness::Ready => {
                    ready += 1;
                    assert_eq!(self.ready.get(&sequence.key()), Some(&slot));
                }
                Readiness::Waits { for_rest } => waiting_for_rest += u64::from(for_rest),
            }
            assert_eq!(sequence.readiness == Readiness::Empty, sequence.chunks.is_empty());
        }
        assert_eq!((self.ready.len(), self.empty.len(), self.waiting_for_rest), (ready, empty, waiting_for_rest));
        assert_eq!(self.free.len(), self.slots.iter().filter(|sequence| sequence.is_none()).count());
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }
}

/// The largest number of which everybody may have as many, so that all have `total` together, at
/// most.
fn share(counts: &[usize], total: usize) -> usize {
    let mut counts = counts.to_vec();
    esatto_map::sort(&mut counts);
    let mut left = total;
    for (at, &count) in counts.iter().enumerate() {
        let share = left / (counts.len() - at);
        if count > share {
            return share;
        }
        left -= count;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_limits_only_the_largest_users() {
        assert_eq!(share(&[10, 2, 30], 20), 9, "10 and 30 are cut to 9 each, 2 stays");
        assert_eq!(share(&[5, 5], 10), usize::MAX);
        assert_eq!(share(&[1153], 1024), 1024);
        assert_eq!(share(&[1; 5], 3), 0, "there are more producers than places");
    }
}
