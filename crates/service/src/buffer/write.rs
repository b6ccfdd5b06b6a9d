//! Storing chunks and patches (`docs/spec/trace-buffer.md §3-§8`).

use super::chunk_list::{Stored, is_before};
use super::fragment::{self, Broken};
use super::record::{self, ChunkRecord, FIRST_CONTINUES, HEADER, INCOMPLETE, LAST_CONTINUES, NEEDS_PATCHING};
use super::record::{Record, WIRE_FLAGS};
use super::sequence::Consumed;
use super::sequences::MIN_CROWDED_RECORD;
use super::{CentralBuffer, Chunk, FillPolicy, Patch, ProducerId, WriterId, loss, work};

/// A chunk after its fragments were checked.
#[derive(Clone, Copy)]
struct Checked<'a> {
    chunk_id: u32,
    /// The valid fragments.
    fragments: &'a [u8],
    available: u16,
    reserved: u16,
    flags: u8,
    /// Number of parsed fragments.
    visited: u16,
    broken: Option<Broken>,
}

impl Checked<'_> {
    /// Tells whether the chunk is complete and has this many bytes.
    fn is_complete(&self, bytes: u16) -> bool {
        self.flags & INCOMPLETE == 0 && self.available == bytes
    }
}

impl CentralBuffer {
    /// Stores a chunk, or replaces its earlier copy.
    ///
    /// Never fails: [`stats`](Self::stats) counts chunks that cannot be stored.
    pub fn copy(&mut self, chunk: &Chunk<'_>) {
        debug_assert!(!self.read_only, "a clone is not written to");
        if self.read_only {
            return;
        }
        self.work += 1;
        if self.closed {
            self.stats.chunks_discarded += 1;
            self.stats.chunks_without_room += 1;
            return;
        }
        let Some(checked) = check(chunk) else {
            self.stats.abi_violations += 1;
            return;
        };
        if record::size_for(checked.reserved.into()) > self.capacity {
            self.stats.abi_violations += 1;
            return;
        }
        self.work += u64::from(checked.visited);
        let slot = self.sequences.touch(chunk.producer, WriterId(chunk.header.writer_id), chunk.identity);
        let sequence = self.sequences.get_mut(slot);
        sequence.histogram.sample(checked.available);

        let mut already_consumed = 0;
        match sequence.consumed {
            Some(last) if last.id == checked.chunk_id && last.incomplete && checked.available > last.bytes => {
                already_consumed = last.bytes;
            }
            Some(last) if !is_before(last.id, checked.chunk_id) => {
                if last.id == checked.chunk_id && last.incomplete && checked.is_complete(last.bytes) {
                    self.end_incomplete(slot, &checked);
                }
                self.stats.chunks_discarded += 1;
                return;
            }
            _ => {}
        }
        if let Some(stored) = self.sequences.find_chunk(slot, checked.chunk_id) {
            return self.copy_again(slot, stored, &checked);
        }
        let chunks = self.sequences.get(slot).chunks();
        let too_late = chunks.front().zip(chunks.back()).is_some_and(|(first, last)| {
            let is_behind = is_before(first.id, checked.chunk_id) || is_before(last.id, checked.chunk_id);
            !is_behind && record::load_chunk(&self.data, first.offset).read > 0
        });
        if too_late {
            // Its successor was already returned.
            self.stats.chunks_discarded += 1;
        } else if !chunks.is_within_span(checked.chunk_id) {
            self.stats.abi_violations += 1;
        } else {
            if already_consumed == 0 {
                self.count_gap(slot, checked.flags, fragment::told_loss(checked.fragments));
            }
            self.count_broken(slot, checked.broken);
            let read = self.read_position(slot, &checked, already_consumed);
            self.store(slot, &checked, read);
        }
    }

    /// Applies patches to a stored chunk.
    ///
    /// Returns false if there is no such chunk or an offset is out of range. Also returns false if
    /// the chunk said that it needs no patches and a packet that waits for later chunks was found
    /// to be whole in it.
    ///
    /// `more` keeps the chunk waiting for further patches.
    pub fn patch(
        &mut self,
        producer: ProducerId,
        writer: WriterId,
        chunk_id: u32,
        patches: impl Iterator<Item = Patch>,
        more: bool,
    ) -> bool {
        self.work += 1;
        // Producers may name any buffer. The buffers of clones do not change.
        let sequence = self.sequences.find(producer, writer).filter(|_| !self.read_only);
        let found = sequence.and_then(|slot| Some((slot, self.sequences.find_chunk(slot, chunk_id)?)));
        let is_missing = found.is_none();
        let found = found.filter(|(slot, stored)| !self.sequences.get(*slot).has_begun_with(stored.id));
        let Some((slot, Stored { offset, .. })) = found else {
            self.stats.patches_failed += 1;
            let is_overwritten = is_missing && self.has_overwritten(sequence, chunk_id);
            self.stats.patches_of_overwritten += u64::from(is_overwritten);
            return false;
        };
        let mut chunk = record::load_chunk(&self.data, offset);
        let start = offset as usize + HEADER;
        let payload = &mut self.data[start..start + usize::from(chunk.available)];
        let mut applied = 0;
        let mut is_out_of_range = false;
        for patch in patches {
            let target = usize::try_from(patch.offset)
                .ok()
                .and_then(|at| Some(at..at.checked_add(patch.data.len())?))
                .and_then(|range| payload.get_mut(range));
            let Some(target) = target else {
                is_out_of_range = true;
                break;
            };
            target.copy_from_slice(&patch.data);
            applied += 1;
        }
        self.work += applied;
        self.sequences.wake(slot);
        if is_out_of_range {
            self.stats.patches_failed += 1;
            return false;
        }
        self.stats.patches_succeeded += applied;
        if !more {
            chunk.flags &= !NEEDS_PATCHING;
            record::store_chunk(&mut self.data, offset as usize, &chunk);
        }
        true
    }

    /// Starts a new sequence for a writer id that is used again. Its chunk ids may begin anywhere.
    /// The data of the earlier writer are read as before.
    pub fn renew_writer(&mut self, producer: ProducerId, writer: WriterId) {
        self.sequences.renew(producer, writer);
    }

    /// Notes that a writer has ended. Among those without data, the buffer forgets it first.
    pub fn end_writer(&mut self, producer: ProducerId, writer: WriterId) {
        self.sequences.end(producer, writer);
    }

    /// Retires a producer that has disconnected, because another one may get its id. Its data are
    /// read as before.
    pub fn retire_producer(&mut self, producer: ProducerId) {
        self.sequences.retire_producer(producer);
    }

    /// Stores a chunk as a new record.
    fn store(&mut self, slot: u32, checked: &Checked<'_>, already_consumed: u16) {
        let size = record::size_for(checked.reserved.into());
        let is_crowded = self.sequences.has_many_with_data();
        let space = if is_crowded { size.max(MIN_CROWDED_RECORD).min(self.capacity) } else { size };
        let Some(offset) = self.make_room(space) else {
            self.stats.chunks_discarded += 1;
            self.stats.chunks_without_room += 1;
            return;
        };
        // Making room may have consumed chunks of the same sequence that follow this one.
        let sequence = self.sequences.get_mut(slot);
        let overtaken = sequence.consumed.is_some_and(|last| {
            let is_continued = last.id == checked.chunk_id && last.incomplete && checked.available > last.bytes;
            !is_continued && !is_before(last.id, checked.chunk_id)
        });
        if overtaken {
            sequence.loss |= loss::PRESENT | loss::OVERWRITE;
            self.stats.chunks_discarded += 1;
            self.pad(offset, space);
            self.write = offset + space;
            return;
        }

        let record = ChunkRecord {
            slot,
            chunk_id: checked.chunk_id,
            reserved: checked.reserved,
            available: checked.available,
            read: already_consumed,
            flags: checked.flags,
        };
        self.put_fragments(offset, checked.fragments);
        self.finish_record(offset, &record);
        if space > size {
            self.pad(offset + size, space - size);
            self.write = offset + space;
        }

        let offset = u32::try_from(offset).expect("a buffer is smaller than 2^32 bytes");
        let is_late = self.sequences.insert_chunk(slot, Stored { id: checked.chunk_id, offset });
        self.stats.chunks_committed_out_of_order += u64::from(is_late);
    }

    /// Handles a chunk that was consumed while it was being written. It is complete, and all its
    /// fragments were known.
    #[cold]
    fn end_incomplete(&mut self, slot: u32, checked: &Checked<'_>) {
        let sequence = self.sequences.get_mut(slot);
        let is_next_begun =
            sequence.chunks().front().is_some_and(|next| record::load_chunk(&self.data, next.offset).read > 0);
        if is_next_begun {
            // The possible loss was marked there.
            return;
        }
        if let Some(last) = &mut sequence.consumed {
            last.incomplete = false;
        }
        if let Some(broken) = checked.broken {
            sequence.loss |= loss::PRESENT | broken.loss();
            self.count_broken(slot, checked.broken);
        }
    }

    /// Replaces the earlier copy of a chunk.
    #[cold]
    fn copy_again(&mut self, slot: u32, Stored { id, offset }: Stored, checked: &Checked<'_>) {
        let mut stored = record::load_chunk(&self.data, offset);
        let is_complete = checked.flags & INCOMPLETE == 0;
        let was_incomplete = stored.has(INCOMPLETE);

        // A producer that patches in shared memory clears NeedsPatching before it commits.
        let was_patched = is_complete && stored.has(NEEDS_PATCHING) && checked.flags & NEEDS_PATCHING == 0;
        let missing = stored.flags & WIRE_FLAGS & !checked.flags & if was_patched { !NEEDS_PATCHING } else { !0 };
        // A chunk that was complete does not grow.
        let most = if was_incomplete { stored.reserved } else { stored.available };
        if checked.available < stored.available || checked.available > most || missing != 0 {
            self.stats.abi_violations += 1;
            return;
        }
        if checked.available == stored.available && !was_patched && !(is_complete && was_incomplete) {
            return;
        }
        let is_larger = checked.available > stored.available;
        let is_relocated = is_larger
            && self.policy == FillPolicy::Ring
            && was_incomplete
            && is_complete
            && stored.is_read()
            && self.sequences.get(slot).chunks().front().is_some_and(|first| first.id == id);
        if stored.available == 0 {
            self.count_gap(slot, checked.flags, fragment::told_loss(checked.fragments));
        }
        self.count_broken(slot, checked.broken);
        if is_larger || was_patched {
            stored.read = self.read_position(slot, checked, stored.read);
        }
        if is_relocated {
            self.sequences.pop_chunk(slot);
            self.free_record(offset as usize, &stored);
            self.stats.chunks_relocated += 1;
            self.store(slot, checked, stored.read);
            return;
        }
        if is_larger {
            self.stats.chunks_rewritten += 1;
        }
        if is_larger || was_patched {
            self.put_fragments(offset as usize, checked.fragments);
        }
        stored.available = checked.available;
        stored.flags = if is_complete || !was_incomplete { checked.flags & !INCOMPLETE } else { checked.flags };
        record::store_chunk(&mut self.data, offset as usize, &stored);
        self.sequences.wake(slot);
    }

    /// Returns the position at which reading continues in a new copy of a chunk, of which this many
    /// bytes were consumed. It is the end of a fragment.
    ///
    /// If the chunk was scraped while its writer wrote it, the writer may have moved its fragments,
    /// and they end elsewhere. Bytes in the middle of a fragment are no size field. They would make
    /// one packet out of pieces of several.
    fn read_position(&mut self, slot: u32, checked: &Checked<'_>, consumed: u16) -> u16 {
        let end = fragment::end_from(checked.fragments, consumed.into());
        if end != usize::from(consumed) {
            self.stats.abi_violations += 1;
            self.sequences.get_mut(slot).loss |= loss::PRESENT | loss::CHUNK_CORRUPTED;
        }
        self.work += u64::from(consumed);
        u16::try_from(end).unwrap_or(checked.available)
    }

    /// Writes the header of a new record, whose fragments are in place.
    pub(super) fn finish_record(&mut self, offset: usize, record: &ChunkRecord) {
        record::store_chunk(&mut self.data, offset, record);
        self.write = offset + record.size();
        self.unread += record.size();
        self.stats.chunks_written += 1;
        self.stats.bytes_written += record.size() as u64;
    }

    /// Makes padding of the record of a chunk.
    pub(super) fn free_record(&mut self, offset: usize, chunk: &ChunkRecord) {
        self.unread -= chunk.size();
        record::store_padding(&mut self.data, offset, chunk.size());
    }

    fn put_fragments(&mut self, offset: usize, fragments: &[u8]) {
        self.work += work::of_copy(fragments.len());
        self.data[offset + HEADER..][..fragments.len()].copy_from_slice(fragments);
    }

    /// Counts the loss that the first packet of a chunk tells, if its writer found the shared
    /// memory full and dropped packets. Such a writer continues in a new chunk.
    #[inline]
    pub(super) fn count_gap(&mut self, slot: u32, flags: u8, told: u32) {
        if told != 0 && flags & FIRST_CONTINUES == 0 {
            // Writers before v57 tell every loss as 1.
            let is_full = told == loss::PRESENT || told & loss::SHARED_MEMORY_FULL != 0;
            let is_counted = core::mem::take(&mut self.sequences.get_mut(slot).is_broken_off);
            self.stats.gaps_between_packets += u64::from(is_full && !is_counted);
        }
    }

    pub(super) fn count_broken(&mut self, slot: u32, broken: Option<Broken>) {
        match broken {
            Some(Broken::DropMarker) => {
                self.stats.trace_writer_packet_loss += 1;
                self.sequences.get_mut(slot).is_broken_off = true;
            }
            Some(Broken::Malformed) => self.stats.abi_violations += 1,
            None => {}
        }
    }

    /// Clears `size` bytes at the write position, and wraps if they do not fit after it. Returns
    /// `None` if the policy is DISCARD and they do not fit.
    ///
    /// `size` is at most the capacity. Afterwards the bytes up to the next record are padding,
    /// except the cleared ones, which the caller fills.
    fn make_room(&mut self, size: usize) -> Option<usize> {
        if self.keeps_unread && self.policy == FillPolicy::Ring {
            self.step_over_unread(size);
        }
        if self.write + size > self.capacity {
            if self.policy == FillPolicy::Discard {
                self.closed = true;
                return None;
            }
            let used = self.data.len();
            self.clear_records(self.write, used);
            if used > self.write {
                self.pad(self.write, used - self.write);
            }
            self.write = 0;
            self.stats.write_wrap_count += 1;
        }
        let (start, end) = (self.write, self.write + size);
        let cleared_to = self.clear_records(start, end);
        if end > self.data.len() {
            self.data.resize(end, 0);
        } else if cleared_to > end {
            self.pad(end, cleared_to - end);
        }
        Some(start)
    }

    /// Moves the write position to the next place where `size` bytes overwrite no chunk. Leaves it
    /// if there is none.
    fn step_over_unread(&mut self, size: usize) {
        let (mut begin, mut at, mut has_wrapped) = (self.write, self.write, false);
        loop {
            if begin + size > self.capacity {
                if has_wrapped {
                    return;
                }
                (begin, at, has_wrapped) = (0, 0, true);
            } else if at >= begin + size || at >= self.data.len() {
                break;
            } else if has_wrapped && begin > self.write {
                return;
            } else {
                self.work += 1;
                let record = record::load(&self.data, at);
                at += record.size();
                if let Record::Chunk(_) = record {
                    begin = at;
                }
            }
        }
        self.stats.write_wrap_count += u64::from(has_wrapped);
        self.write = begin;
    }

    /// Consumes every record that begins in `from..to`, and returns where the last one ended.
    pub(super) fn clear_records(&mut self, from: usize, to: usize) -> usize {
        let to = to.min(self.data.len());
        let mut at = from;
        while at < to {
            let record = record::load(&self.data, at);
            self.work += 1;
            match record {
                Record::Chunk(chunk) => self.erase_through(chunk.slot, at),
                Record::Padding { size } => self.stats.padding_bytes_cleared += size as u64,
            }
            at += record.size();
        }
        at
    }

    pub(super) fn pad(&mut self, offset: usize, size: usize) {
        record::store_padding(&mut self.data, offset, size);
        self.stats.padding_bytes_written += size as u64;
    }
}

/// Finds the valid fragments of a chunk. Returns `None` if it is larger than any chunk can be.
fn check<'a>(chunk: &Chunk<'a>) -> Option<Checked<'a>> {
    let payload_bytes = u16::try_from(chunk.payload.len()).ok()?;
    let (count, mut flags, reserved) = if chunk.complete {
        (chunk.header.count, chunk.header.flags & WIRE_FLAGS, None)
    } else {
        let flags = chunk.header.flags & WIRE_FLAGS & !(LAST_CONTINUES | NEEDS_PATCHING);
        (chunk.header.count.saturating_sub(1), flags | INCOMPLETE, Some(payload_bytes))
    };
    let parsed = fragment::parse_all(chunk.payload, count);
    if let Some(broken) = parsed.broken {
        // The fragment that would continue or be patched lies after the break.
        flags &= !(LAST_CONTINUES | NEEDS_PATCHING);
        flags |= broken.flag();
    }
    let available = u16::try_from(parsed.valid_bytes).ok()?;
    Some(Checked {
        chunk_id: chunk.header.chunk_id,
        fragments: &chunk.payload[..parsed.valid_bytes],
        available,
        reserved: reserved.unwrap_or(available),
        flags,
        visited: parsed.visited,
        broken: parsed.broken,
    })
}

impl Broken {
    /// Returns the flag of a record whose chunk ends like this.
    pub(super) fn flag(self) -> u8 {
        match self {
            Self::DropMarker => record::ABORTED,
            Self::Malformed => record::CORRUPTED,
        }
    }

    /// Returns the loss bits that the next packet tells.
    fn loss(self) -> u32 {
        match self {
            Self::DropMarker => loss::WRITER_ABORT,
            Self::Malformed => loss::CHUNK_CORRUPTED,
        }
    }
}

impl Consumed {
    /// Returns the rest of a record that is consumed to its end.
    pub(super) fn of(chunk: &ChunkRecord) -> Self {
        Self { id: chunk.chunk_id, bytes: chunk.available, incomplete: chunk.has(INCOMPLETE) }
    }
}
