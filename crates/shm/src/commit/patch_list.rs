//! [`PatchList`]: the values that a writer still owes to chunks that it has given away
//! (`docs/spec/shared-memory.md` §11).

use std::collections::VecDeque;

use crate::abi::PATCH_SIZE;

/// Value, mostly a length, in a chunk that its writer has given away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatchRecord {
    pub(crate) chunk_id: u32,
    /// From the start of the payload.
    pub(crate) offset: u16,
    /// The redundant varint. Its first byte has bit 7 set, so 0 means "not known yet".
    value: [u8; PATCH_SIZE],
    /// True if the application tells the value later. False for the length of a message in the
    /// packet being written.
    deferred: bool,
}

impl PatchRecord {
    /// Returns the value, if it is known.
    pub(crate) fn value(&self) -> Option<[u8; PATCH_SIZE]> {
        (self.value[0] != 0).then_some(self.value)
    }
}

/// Records of one writer in the order in which they were made: by chunk, then by offset.
///
/// They are sent in the same order, so a record with a value waits for the records before it.
/// Numbers of records ([`PatchList::push`]) stay valid while others are taken from the front.
#[derive(Debug, Default)]
pub(crate) struct PatchList {
    records: VecDeque<PatchRecord>,
    /// Number of the record at the front; wraps.
    first: u32,
}

impl PatchList {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if the first record can be sent.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.records.front().is_some_and(|record| record.value().is_some())
    }

    /// Adds a record without a value, and returns its number.
    pub(crate) fn push(&mut self, chunk_id: u32, offset: u16) -> u32 {
        self.push_record(PatchRecord { chunk_id, offset, value: [0; PATCH_SIZE], deferred: false })
    }

    /// As [`push`](Self::push), for a value that [`fill_lengths`](Self::fill_lengths) does not set.
    pub(crate) fn push_deferred(&mut self, chunk_id: u32, offset: u16) -> u32 {
        self.push_record(PatchRecord { chunk_id, offset, value: [0; PATCH_SIZE], deferred: true })
    }

    /// Sets the value of a record that was not taken yet.
    pub(crate) fn fill(&mut self, number: u32, value: [u8; PATCH_SIZE]) {
        debug_assert!(value[0] != 0);
        if let Some(record) = self.records.get_mut(number.wrapping_sub(self.first) as usize) {
            record.value = value;
        }
    }

    /// Gives this value to every length that has none.
    pub(crate) fn fill_lengths(&mut self, value: [u8; PATCH_SIZE]) {
        for record in &mut self.records {
            if record.value().is_none() && !record.deferred {
                record.value = value;
            }
        }
    }

    /// Returns the record at the front, if its value is known.
    pub(crate) fn ready(&self) -> Option<(PatchRecord, [u8; PATCH_SIZE])> {
        let record = *self.records.front()?;
        Some((record, record.value()?))
    }

    /// Removes the record at the front.
    pub(crate) fn pop(&mut self) {
        if self.records.pop_front().is_some() {
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Returns the chunk of the record at the front, with or without a value.
    pub(crate) fn front_chunk(&self) -> Option<u32> {
        self.records.front().map(|r| r.chunk_id)
    }

    #[expect(clippy::cast_possible_truncation, reason = "numbers wrap")]
    pub(crate) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.records.len() as u32);
        self.records.clear();
    }

    #[expect(clippy::cast_possible_truncation, reason = "numbers wrap")]
    fn push_record(&mut self, record: PatchRecord) -> u32 {
        let number = self.first.wrapping_add(self.records.len() as u32);
        self.records.push_back(record);
        number
    }
}
