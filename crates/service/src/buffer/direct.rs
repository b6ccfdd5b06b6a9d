//! Direct copy: a chunk in order goes from the producer's memory straight to the place of its
//! record.
//!
//! The used size of a chunk is known only after its copy was parsed, and the service may overwrite
//! only what the record needs. So the direct copy serves the two places where this makes no
//! difference. One is the untouched end of the buffer, where nothing is overwritten. The other is a
//! single record that is at least as large as the chunk, because it is removed in any case. Busy
//! writers fill chunk after chunk, which makes records of one size. All other chunks are copied
//! through `scratch`.

use esatto_shm::Lost;

use super::chunk_list::is_before;
use super::fragment;
use super::record::{self, ChunkRecord, HEADER, LAST_CONTINUES, NEEDS_PATCHING, WIRE_FLAGS};
use super::{CentralBuffer, Chunk, Identity, ProducerId, WriterId, work};
use crate::shared_buffer::{ChunkHeader, Payload};

/// Fragments of a chunk whose payload vanished while it was copied: one that is not there, so that
/// the loss is marked.
const LOST_COUNT: u16 = 1;

/// The place of the new record.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Memory that was never written.
    Untouched,
    /// A record at least as large as the chunk.
    Record,
}

impl CentralBuffer {
    /// Stores a complete chunk whose payload is still in the producer's memory. Otherwise works
    /// like [`copy`](Self::copy).
    ///
    /// Uses `scratch` if the chunk cannot go straight to its place.
    pub fn copy_from(
        &mut self,
        producer: ProducerId,
        identity: Identity,
        header: ChunkHeader,
        payload: &dyn Payload,
        scratch: &mut Vec<u8>,
    ) {
        match self.short_way(producer, header, payload.size_bytes()) {
            Some((slot, place)) => self.copy_to_place(slot, place, header, payload),
            None => {
                scratch.clear();
                let copied = payload.append_to(scratch);
                let (header, payload) = match copied {
                    Ok(()) => (header, &scratch[..]),
                    Err(Lost) => (ChunkHeader { count: LOST_COUNT, ..header }, &[][..]),
                };
                self.copy(&Chunk { producer, identity, header, complete: true, payload });
            }
        }
    }

    /// Returns the place of the record, if the chunk is the newest of a known sequence.
    fn short_way(&mut self, producer: ProducerId, header: ChunkHeader, payload_bytes: usize) -> Option<(u32, Place)> {
        let most = record::size_for(payload_bytes);
        if self.read_only
            || self.closed
            || payload_bytes > u16::MAX.into()
            || self.sequences.is_crowded()
            || self.sequences.has_many_with_data()
        {
            return None;
        }
        let place = if self.write + most > self.capacity {
            return None;
        } else if self.write == self.data.len() {
            Place::Untouched
        } else {
            let record = record::load(&self.data, self.write);
            let is_kept = self.keeps_unread && matches!(record, record::Record::Chunk(_));
            if is_kept || record.size() < most {
                return None;
            }
            Place::Record
        };
        let slot = self.sequences.find(producer, WriterId(header.writer_id))?;
        let sequence = self.sequences.get(slot);
        let is_next = sequence.consumed.is_none_or(|last| is_before(last.id, header.chunk_id))
            && sequence.chunks().back().is_none_or(|last| is_before(last.id, header.chunk_id))
            && sequence.chunks().is_within_span(header.chunk_id);
        is_next.then_some((slot, place))
    }

    fn copy_to_place(&mut self, slot: u32, place: Place, header: ChunkHeader, payload: &dyn Payload) {
        let begin = self.write;
        let payload_at = begin + HEADER;
        let (cleared_to, copied) = match place {
            Place::Untouched => {
                self.data.resize(payload_at, 0);
                (None, payload.append_to(&mut self.data))
            }
            Place::Record => {
                let cleared_to = self.clear_records(begin, begin + 1);
                // The following record comes next, and its memory is far away: load it while this
                // chunk is copied.
                esatto_shm::prefetch(&self.data[cleared_to..]);
                (Some(cleared_to), payload.copy_to(&mut self.data[payload_at..cleared_to]))
            }
        };
        // From here on the service looks only at the copy.
        let parsed = match copied {
            Ok(()) => fragment::parse_all(&self.data[payload_at..payload_at + payload.size_bytes()], header.count),
            Err(Lost) => fragment::parse_all(&[], LOST_COUNT),
        };
        self.work += work::of_copy(payload.size_bytes()) + u64::from(parsed.visited);
        let mut flags = header.flags & WIRE_FLAGS;
        if let Some(broken) = parsed.broken {
            flags = flags & !(LAST_CONTINUES | NEEDS_PATCHING) | broken.flag();
        }
        let told = fragment::told_loss(&self.data[payload_at..payload_at + parsed.valid_bytes]);
        self.count_gap(slot, flags, told);
        self.count_broken(slot, parsed.broken);
        let available = u16::try_from(parsed.valid_bytes).expect("no more than the payload");
        let record = ChunkRecord { slot, chunk_id: header.chunk_id, reserved: available, available, read: 0, flags };
        let end = begin + record.size();
        match cleared_to {
            None => self.data.resize(end, 0),
            Some(cleared_to) if cleared_to > end => self.pad(end, cleared_to - end),
            Some(_) => {}
        }
        self.finish_record(begin, &record);
        self.sequences.push_chunk(slot, header.chunk_id, begin, available);
    }
}
