//! The writers of a producer: which buffer each is for, and which ids will be somebody else's
//! (`docs/spec/service.md §2`).

use std::collections::{BTreeMap, BTreeSet};

use crate::context::Context;
use crate::ids::{BufferId, ProducerId, WriterId};
use crate::service::Service;
use crate::shares::Bounds;

/// Writers that the service remembers of one producer, whatever others have: more than the threads
/// of most programs.
const WRITERS_PER_PRODUCER: u64 = 512;

/// Writers that it remembers of all producers beyond that. A user gets at most half of what is
/// left, and a producer at most half of what is left for its user. A writer that does not fit is
/// not registered: the chunks that it commits arrive, but the service does not scrape it.
const WRITERS_OF_ALL: u64 = 1 << 20;

pub(crate) const WRITERS: Bounds = Bounds { each: WRITERS_PER_PRODUCER, pool: WRITERS_OF_ALL };

/// The writers that a producer has registered.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    by_id: BTreeMap<WriterId, BufferId>,
    by_buffer: BTreeSet<(BufferId, WriterId)>,
    /// Those that it has unregistered and not registered again; none of them is in the others.
    retired: BTreeSet<WriterId>,
    /// How many were not registered, because the producer had its share.
    pub(crate) refused: u64,
}

impl Writers {
    /// How many are remembered.
    pub(crate) fn len(&self) -> u64 {
        (self.by_id.len() + self.retired.len()) as u64
    }

    #[inline]
    pub(crate) fn get(&self, writer: WriterId) -> Option<BufferId> {
        self.by_id.get(&writer).copied()
    }

    fn is_known(&self, writer: WriterId) -> bool {
        self.by_id.contains_key(&writer) || self.retired.contains(&writer)
    }

    /// Registers a writer; true if its id was retired, so that it is a new writer now.
    fn insert(&mut self, writer: WriterId, buffer: BufferId) -> bool {
        if let Some(before) = self.by_id.insert(writer, buffer) {
            self.by_buffer.remove(&(before, writer));
        }
        self.by_buffer.insert((buffer, writer));
        self.retired.remove(&writer)
    }

    fn remove(&mut self, writer: WriterId) -> Option<BufferId> {
        let buffer = self.by_id.remove(&writer)?;
        self.by_buffer.remove(&(buffer, writer));
        Some(buffer)
    }

    /// Unregisters a writer, whose id may come back for another one.
    pub(crate) fn retire(&mut self, writer: WriterId) {
        if self.remove(writer).is_some() {
            self.retired.insert(writer);
        }
    }

    /// Forgets the retired id that will probably be used again last; false if there is none.
    /// Producers use their ids in turn, so it is the one before this.
    fn forget_retired_before(&mut self, writer: WriterId) -> bool {
        let last = self.retired.range(..writer).next_back().or_else(|| self.retired.last()).copied();
        last.is_some_and(|last| self.retired.remove(&last))
    }

    /// Forgets the writers of a buffer; how many there were.
    pub(crate) fn remove_all_of(&mut self, buffer: BufferId) -> u64 {
        let range = (buffer, WriterId(0))..=(buffer, WriterId(u16::MAX));
        let writers: Vec<WriterId> = self.by_buffer.range(range).map(|&(_, writer)| writer).collect();
        for &writer in &writers {
            self.remove(writer);
        }
        writers.len() as u64
    }
}

impl Service {
    /// A producer names the buffer of a writer. An id that it has given back before is a new
    /// writer's now (`docs/spec/trace-buffer.md §7`).
    pub(crate) fn register_writer(
        &mut self,
        producer: ProducerId,
        writer: WriterId,
        buffer: BufferId,
        cx: &mut Context<'_>,
    ) {
        let Some(found) = self.producers.get_mut(&producer) else { return };
        let writers = &mut found.writers;
        // Without room a dead writer makes place for a live one.
        if !writers.is_known(writer)
            && !self.writer_pool.take(WRITERS, &found.peer, writers.len(), 1)
            && !writers.forget_retired_before(writer)
        {
            writers.refused += 1;
            if writers.refused == 1 {
                cx.warn(format!(
                    "producer {} of uid {} has its share of writers, which is {}: further ones are not scraped",
                    found.display_name(),
                    found.peer.uid,
                    found.writers.len(),
                ));
            }
            return;
        }
        if writers.insert(writer, buffer) {
            for id in &found.allowed_buffers {
                cx.charge(1);
                if let Some(buffer) = self.buffers.get_mut(id) {
                    buffer.renew_writer(producer, writer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_registered_or_retired() {
        let mut writers = Writers::default();
        for id in [3, 1, 2] {
            assert!(!writers.insert(WriterId(id), BufferId(1)));
        }
        writers.retire(WriterId(2));
        writers.retire(WriterId(2));
        writers.retire(WriterId(9));
        assert_eq!((writers.len(), writers.get(WriterId(2))), (3, None));
        assert!(writers.insert(WriterId(2), BufferId(2)), "a new writer under an old id");
        assert!(!writers.insert(WriterId(2), BufferId(1)), "the same writer in another buffer");
        assert_eq!((writers.len(), writers.remove_all_of(BufferId(2)), writers.remove_all_of(BufferId(1))), (3, 0, 3));
        assert_eq!(writers.len(), 0);
    }

    #[test]
    fn the_retired_id_that_comes_back_last_is_forgotten_first() {
        let mut writers = Writers::default();
        for id in 1..=5 {
            writers.insert(WriterId(id), BufferId(1));
            writers.retire(WriterId(id));
        }
        let left = |writers: &Writers| writers.retired.iter().map(|id| id.0).collect::<Vec<_>>();
        assert!(writers.forget_retired_before(WriterId(3)));
        assert_eq!(left(&writers), [1, 3, 4, 5]);
        assert!(writers.forget_retired_before(WriterId(1)));
        assert_eq!(left(&writers), [1, 3, 4]);
        for _ in 0..3 {
            assert!(writers.forget_retired_before(WriterId(1)));
        }
        assert!(!writers.forget_retired_before(WriterId(1)));
    }
}
