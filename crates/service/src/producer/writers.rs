//! Writers of a producer: their buffers, and their ids that another writer may use again
//! (`docs/spec/service.md §2`).

use esatto_map::{LargeMap, LargeSet};

use super::Producers;
use crate::buffer::table::Buffers;
use crate::context::Context;
use crate::fair_share::Bounds;
use crate::ids::{BufferId, ProducerId, WriterId};

/// Writers that the service always registers for a producer: more than the threads of most
/// programs.
const WRITERS_PER_PRODUCER: u64 = 512;

/// Writers that the service registers for all producers beyond that.
///
/// A user gets at most half of what is left, and a producer at most half of what is left for its
/// user. A writer that does not fit is not registered: its commits arrive, but the service does not
/// scrape it.
const WRITERS_OF_ALL: u64 = 1 << 20;

/// Writers of a producer that wait for room. Protects memory; the service never registers later
/// ones.
const MAX_WAITING_WRITERS: usize = 512;

pub(crate) const WRITERS: Bounds = Bounds { each: WRITERS_PER_PRODUCER, pool: WRITERS_OF_ALL };

/// The writers that a producer has registered.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    by_id: LargeMap<WriterId, BufferId>,
    by_buffer: LargeSet<(BufferId, WriterId)>,
    /// Writers that did not fit. They are registered when there is room, and are in no other table.
    waiting: LargeMap<WriterId, BufferId>,
    /// Ids that the producer has given back and not registered again.
    retired: IdSet,
    /// Ids that the producer has ever registered.
    seen: IdSet,
    /// Number of writers that did not fit when they came, because the producer had its share.
    pub(crate) refused: u64,
}

impl Writers {
    /// Returns the number of registered writers.
    pub(crate) fn len(&self) -> u64 {
        self.by_id.len() as u64
    }

    #[inline]
    pub(crate) fn get(&self, writer: WriterId) -> Option<BufferId> {
        self.by_id.get(&writer).copied()
    }

    /// Returns true if the producer has registered such an id, even if the writer did not fit, was
    /// given back, or wrote for a session that has ended.
    pub(crate) fn has_seen(&self, writer: WriterId) -> bool {
        self.seen.contains(writer)
    }

    fn insert(&mut self, writer: WriterId, buffer: BufferId) {
        if let Some(before) = self.by_id.insert(writer, buffer) {
            self.by_buffer.remove(&(before, writer));
        }
        self.by_buffer.insert((buffer, writer));
        self.waiting.remove(&writer);
    }

    /// Removes a writer. Returns true if it was registered.
    fn remove(&mut self, writer: WriterId) -> bool {
        self.waiting.remove(&writer);
        let Some(buffer) = self.by_id.remove(&writer) else { return false };
        self.by_buffer.remove(&(buffer, writer))
    }

    fn wait(&mut self, writer: WriterId, buffer: BufferId) {
        if self.waiting.len() < MAX_WAITING_WRITERS || self.waiting.contains_key(&writer) {
            self.waiting.insert(writer, buffer);
        }
    }

    /// Removes the writers of a buffer, and returns how many were registered.
    pub(crate) fn remove_all_of(&mut self, buffer: BufferId) -> u64 {
        let range = (buffer, WriterId(0))..=(buffer, WriterId(u16::MAX));
        let writers: Vec<WriterId> = self.by_buffer.range(range).map(|&(_, writer)| writer).collect();
        for &writer in &writers {
            self.remove(writer);
        }
        self.waiting.retain(|_, target| *target != buffer);
        writers.len() as u64
    }
}

/// A set of writer ids with a bit for each, at most 8 KiB.
#[derive(Debug, Default)]
struct IdSet(Vec<u64>);

impl IdSet {
    fn insert(&mut self, writer: WriterId) {
        let (at, bit) = Self::place(writer);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= bit;
    }

    fn contains(&self, writer: WriterId) -> bool {
        let (at, bit) = Self::place(writer);
        self.0.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Removes an id. Returns true if it was in the set.
    fn remove(&mut self, writer: WriterId) -> bool {
        let (at, bit) = Self::place(writer);
        self.0.get_mut(at).is_some_and(|word| core::mem::replace(word, *word & !bit) & bit != 0)
    }

    fn place(writer: WriterId) -> (usize, u64) {
        (usize::from(writer.0) / 64, 1 << (writer.0 % 64))
    }
}

impl Producers {
    /// Registers the buffer of a writer. An id that the producer has given back before belongs to a
    /// new writer now (`docs/spec/trace-buffer.md §7`).
    pub(crate) fn register_writer(
        &mut self,
        producer: ProducerId,
        writer: WriterId,
        buffer: BufferId,
        buffers: &mut Buffers,
        cx: &mut Context<'_>,
    ) {
        self.register_waiting(producer, cx);
        let Some(found) = self.by_id.get_mut(&producer) else { return };
        let writers = &mut found.writers;
        writers.seen.insert(writer);
        // Also if it is not registered, because the chunks that it commits arrive.
        if writers.retired.remove(writer) {
            for &id in &found.allowed_buffers {
                cx.charge(1);
                if let Some(buffer) = buffers.get_mut(id) {
                    buffer.renew_writer(producer, writer);
                }
            }
        }
        if writers.get(writer).is_some() || self.writer_pool.take(WRITERS, &found.peer, writers.len(), 1) {
            return writers.insert(writer, buffer);
        }
        writers.wait(writer, buffer);
        writers.refused += 1;
        if writers.refused == 1 {
            cx.warn(format!(
                "producer {} of uid {} has used up its share of writers ({}): further ones are not scraped",
                found.display_name(),
                found.peer.uid,
                found.writers.len(),
            ));
        }
    }

    /// Takes back the id of a writer. A writer that waits may take its place.
    pub(crate) fn unregister_writer(
        &mut self,
        producer: ProducerId,
        writer: WriterId,
        buffers: &mut Buffers,
        cx: &mut Context<'_>,
    ) {
        let Some(found) = self.by_id.get_mut(&producer) else { return };
        for &id in &found.allowed_buffers {
            cx.charge(1);
            if let Some(buffer) = buffers.get_mut(id) {
                buffer.end_writer(producer, writer);
            }
        }
        let held = found.writers.len();
        if found.writers.remove(writer) {
            self.writer_pool.give_back(WRITERS, &found.peer, held, 1);
        }
        found.writers.retired.insert(writer);
        self.register_waiting(producer, cx);
    }

    /// Registers the writers that wait, as long as there is room.
    fn register_waiting(&mut self, producer: ProducerId, cx: &mut Context<'_>) {
        let Some(found) = self.by_id.get_mut(&producer) else { return };
        let writers = &mut found.writers;
        while let Some((&writer, &buffer)) = writers.waiting.first_key_value() {
            if !self.writer_pool.take(WRITERS, &found.peer, writers.len(), 1) {
                return;
            }
            cx.charge(1);
            writers.insert(writer, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_has_one_buffer() {
        let mut writers = Writers::default();
        for id in [3, 1, 2] {
            writers.insert(WriterId(id), BufferId(1));
        }
        assert!(writers.remove(WriterId(2)));
        assert!(!writers.remove(WriterId(2)) && !writers.remove(WriterId(9)));
        assert_eq!((writers.len(), writers.get(WriterId(2))), (2, None));
        writers.insert(WriterId(3), BufferId(2));
        assert_eq!((writers.remove_all_of(BufferId(2)), writers.remove_all_of(BufferId(1))), (1, 1));
        assert_eq!(writers.len(), 0);
    }

    #[test]
    fn only_so_many_writers_wait() {
        let mut writers = Writers::default();
        for id in 1..=u16::MAX {
            writers.wait(WriterId(id), BufferId(1));
        }
        assert_eq!(writers.waiting.len(), MAX_WAITING_WRITERS);
        writers.wait(WriterId(7), BufferId(2));
        assert_eq!(writers.remove_all_of(BufferId(1)), 0);
        assert_eq!(writers.waiting.into_iter().collect::<Vec<_>>(), [(WriterId(7), BufferId(2))]);
    }

    #[test]
    fn a_set_of_all_ids_is_small() {
        let mut ids = IdSet::default();
        assert!(!ids.remove(WriterId(u16::MAX)));
        for id in 1..=u16::MAX {
            ids.insert(WriterId(id));
        }
        assert_eq!(ids.0.len() * 8, 8192);
        assert!((1..=u16::MAX).all(|id| ids.contains(WriterId(id))) && !ids.contains(WriterId(0)));
        assert!((1..=u16::MAX).all(|id| ids.remove(WriterId(id)) && !ids.remove(WriterId(id))));
    }
}
