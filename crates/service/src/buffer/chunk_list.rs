//! The stored chunks of one sequence, ordered by id.
//!
//! Nearly every chunk is newer than all stored chunks of its sequence, and is appended. A chunk
//! that comes after a newer one goes into a tree beside the list. So no order of ids costs more
//! than a logarithm per chunk.

use core::cmp::Ordering;
use core::ops::Bound;
use std::collections::VecDeque;

use esatto_map::LargeMap;

/// Entries for which a list keeps memory even when it needs less.
const KEPT_ENTRIES: usize = 16;

/// Tells whether chunk id `a` comes before `b`, modulo 2^32.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// A stored chunk of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) id: u32,
    pub(super) offset: u32,
}

/// A chunk id, ordered modulo 2^32. This is an order among ids that span less than 2^31, as those
/// of a list do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModularId(u32);

impl Ord for ModularId {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.0 == other.0 {
            true => Ordering::Equal,
            false if is_before(self.0, other.0) => Ordering::Less,
            false => Ordering::Greater,
        }
    }
}

impl PartialOrd for ModularId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A chunk's place in the list, valid until the first chunk is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: Stored,
    /// Number of entries of `in_order` that come before it or are it.
    passed: u32,
}

/// Chunks ordered by id; the ids span less than 2^31.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkList {
    /// Chunks that were newer than all others when they came. The newest of all chunks is one of
    /// them.
    in_order: VecDeque<Stored>,
    /// Offsets of the chunks that came after a newer one.
    late: LargeMap<ModularId, u32>,
}

impl ChunkList {
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// Returns the highest cost of a search, in comparisons.
    pub(super) fn search_work(&self) -> u64 {
        1 + u64::from(self.len().checked_ilog2().unwrap_or(0))
    }

    #[inline]
    pub(super) fn front(&self) -> Option<Stored> {
        let first = *self.in_order.front()?;
        Some(self.oldest_late().filter(|late| is_before(late.id, first.id)).unwrap_or(first))
    }

    #[inline]
    pub(super) fn back(&self) -> Option<Stored> {
        self.in_order.back().copied()
    }

    #[inline]
    fn oldest_late(&self) -> Option<Stored> {
        self.late.first_key_value().map(|(&ModularId(id), &offset)| Stored { id, offset })
    }

    /// Returns the place of the first chunk.
    pub(super) fn first(&self) -> Option<Place> {
        let chunk = self.front()?;
        Some(Place { chunk, passed: u32::from(self.in_order[0] == chunk) })
    }

    /// Returns the place of the next chunk.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        let in_order = self.in_order.get(place.passed as usize).copied();
        let behind = (Bound::Excluded(ModularId(place.chunk.id)), Bound::Unbounded);
        let late = self.late.range(behind).next().map(|(&ModularId(id), &offset)| Stored { id, offset });
        match (in_order, late) {
            (Some(chunk), Some(late)) if is_before(late.id, chunk.id) => {
                Some(Place { chunk: late, passed: place.passed })
            }
            (Some(chunk), _) => Some(Place { chunk, passed: place.passed + 1 }),
            (None, late) => late.map(|chunk| Place { chunk, passed: place.passed }),
        }
    }

    /// Counts the chunks before this id, up to `most`.
    pub(super) fn count_before(&self, id: u32, most: usize) -> usize {
        let in_order = self.in_order.partition_point(|stored| is_before(stored.id, id)).min(most);
        in_order + self.late.range(..ModularId(id)).take(most - in_order).count()
    }

    /// Returns the place of a chunk that is in the list.
    pub(super) fn place_of(&self, chunk: Stored) -> Place {
        let passed = self.in_order.partition_point(|stored| !is_before(chunk.id, stored.id));
        Place { chunk, passed: u32::try_from(passed).expect("a chunk has 16 bytes of a buffer of 2^32") }
    }

    /// Returns the chunk with this id.
    pub(super) fn find(&self, id: u32) -> Option<Stored> {
        // Most chunks arrive in order.
        if self.in_order.back().is_none_or(|last| is_before(last.id, id)) {
            return None;
        }
        let at = self.in_order.partition_point(|stored| is_before(stored.id, id));
        if let Some(&stored) = self.in_order.get(at).filter(|stored| stored.id == id) {
            return Some(stored);
        }
        let offset = *self.late.get(&ModularId(id))?;
        Some(Stored { id, offset })
    }

    /// Tells whether the list still spans less than 2^31 ids with this one.
    pub(super) fn is_within_span(&self, id: u32) -> bool {
        match (self.front(), self.back()) {
            (Some(first), Some(last)) => {
                let (first, last) = if is_before(id, first.id) { (id, last.id) } else { (first.id, id) };
                first == last || is_before(first, last)
            }
            _ => true,
        }
    }

    /// Adds a chunk that is newer than all others.
    #[inline]
    pub(super) fn push_back(&mut self, stored: Stored) {
        self.in_order.push_back(stored);
    }

    /// Adds a chunk. Returns true if the list had a newer one.
    pub(super) fn insert(&mut self, stored: Stored) -> bool {
        let is_late = self.in_order.back().is_some_and(|last| !is_before(last.id, stored.id));
        if is_late {
            self.late.insert(ModularId(stored.id), stored.offset);
        } else {
            self.in_order.push_back(stored);
        }
        is_late
    }

    /// Removes the chunk with this id, and returns how many others moved in memory. Places become
    /// invalid.
    ///
    /// A ring overwrites the chunks of `in_order` from first to last, so the chunk is the first of
    /// them or a late one.
    pub(super) fn remove(&mut self, id: u32) -> usize {
        if self.late.remove(&ModularId(id)).is_some() {
            return 0;
        }
        let at = self.in_order.partition_point(|stored| is_before(stored.id, id));
        let moved = at.min(self.in_order.len().saturating_sub(at));
        self.in_order.remove(at);
        // The newest chunk is always in order.
        if let Some((&newest, &offset)) = self.late.last_key_value() {
            if self.in_order.back().is_none_or(|last| is_before(last.id, newest.0)) {
                self.late.remove(&newest);
                self.in_order.push_back(Stored { id: newest.0, offset });
            }
        }
        moved
    }

    /// Removes the oldest chunk, and returns how many others moved in memory.
    #[inline]
    pub(super) fn pop_front(&mut self) -> usize {
        if let (Some(first), false) = (self.in_order.front(), self.late.is_empty()) {
            if self.late.first_key_value().is_some_and(|(oldest, _)| is_before(oldest.0, first.id)) {
                self.late.pop_first();
                return 0;
            }
        }
        self.in_order.pop_front();
        let len = self.in_order.len();
        if self.in_order.capacity() > KEPT_ENTRIES && len <= self.in_order.capacity() / 4 {
            self.in_order.shrink_to((2 * len).max(KEPT_ENTRIES));
            return len;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ids(list: &ChunkList) -> Vec<u32> {
        let mut at = list.first();
        let mut ids = Vec::new();
        while let Some(place) = at {
            assert_eq!(list.find(place.chunk.id), Some(place.chunk));
            assert_eq!(list.place_of(place.chunk), place);
            ids.push(place.chunk.id);
            at = list.after(place);
        }
        ids
    }

    proptest! {
        #[test]
        fn a_list_is_sorted_in_any_order_of_insertion(ops in proptest::collection::vec((0..64u32, 0..4), 0..200)) {
            const BASE: u32 = u32::MAX - 31;
            let (mut list, mut model) = (ChunkList::default(), BTreeMap::new());
            for (id, op) in ops {
                if op == 0 {
                    list.pop_front();
                    model.pop_first();
                } else if op == 1 {
                    if model.remove(&id).is_some() {
                        list.remove(BASE.wrapping_add(id));
                    }
                } else if model.insert(id, ()).is_none() {
                    let newest = model.last_key_value().map(|(&id, ())| id);
                    let stored = Stored { id: BASE.wrapping_add(id), offset: id };
                    prop_assert_eq!(list.find(stored.id), None);
                    prop_assert_eq!(list.insert(stored), newest != Some(id));
                }
                for most in [0, 3, 100] {
                    prop_assert_eq!(list.count_before(BASE.wrapping_add(id), most), model.range(..id).count().min(most));
                }
                let expected: Vec<u32> = model.keys().map(|id| BASE.wrapping_add(*id)).collect();
                prop_assert_eq!(list.front().map(|stored| stored.id), expected.first().copied());
                prop_assert_eq!(list.back().map(|stored| stored.id), expected.last().copied());
                prop_assert_eq!((list.len(), list.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert_eq!(ids(&list), expected);
            }
        }
    }

    #[test]
    fn memory_goes_with_the_chunks() {
        let mut list = ChunkList::default();
        for id in 0..100_000 {
            list.push_back(Stored { id, offset: 0 });
        }
        let moved: usize = (0..100_000).map(|_| list.pop_front()).sum();
        assert!(list.in_order.capacity() <= KEPT_ENTRIES);
        assert!(moved <= 100_000, "{moved} entries are moved");
    }
}
