use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::iter::Flatten;
use core::ops::{Bound, RangeBounds};
use core::{fmt, mem, slice};

/// Map in the order of its keys, for any number of entries.
///
/// The entries lie in sorted blocks of about 4 KB, and a sorted list of these blocks is the map. A
/// look-up is two binary searches. Inserting or removing an entry moves at most the entries of its
/// block and, when a block divides or ends, the list. A map of a million ids so costs 20 times a
/// small one, not 10,000 times. Blocks of few entries are joined, so neither memory nor the list
/// grows with what was removed.
#[derive(Clone)]
pub struct LargeMap<K, V> {
    /// In the order of their keys; none is empty.
    blocks: Vec<Vec<(K, V)>>,
    len: usize,
}

/// Place of an entry: its block, and its index there.
type Place = (usize, usize);

impl<K, V> LargeMap<K, V> {
    /// Most entries of a block: a power of two, so that doubling its memory ends there.
    const BLOCK: usize = match 4096_usize.checked_div(size_of::<(K, V)>()) {
        Some(entries @ 16..256) => 1 << entries.ilog2(),
        Some(..16) => 16,
        Some(256..) | None => 256,
    };

    /// Makes an empty map. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries and frees their memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Iterates over keys and values, in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> LargeIter<'_, K, V> {
        LargeIter { front: [].iter(), blocks: self.blocks.iter(), back: [].iter() }
    }

    /// Iterates over keys and values, in the order of the keys.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.blocks.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }

    /// Iterates over the keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.blocks.iter_mut().flatten().map(|(_, value)| value)
    }

    /// Iterates over the keys, in order.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.blocks.into_iter().flatten().map(|(key, _)| key)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.blocks.into_iter().flatten().map(|(_, value)| value)
    }

    /// Returns the entry of the smallest key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.blocks.first()?.first().map(|(key, value)| (key, value))
    }

    /// Returns the entry of the largest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.blocks.last()?.last().map(|(key, value)| (key, value))
    }

    /// Keeps the entries for which `keep` returns true. Visits each entry once, and moves it at
    /// most twice.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.blocks.iter_mut().for_each(|block| block.retain_mut(|(key, value)| keep(key, value)));
        self.blocks.dedup_by(|block, before| {
            let joins = before.len() + block.len() <= Self::BLOCK / 2;
            if joins {
                before.append(block);
            }
            joins
        });
        self.blocks.retain(|block| !block.is_empty());
        self.blocks.iter_mut().for_each(shrink);
        shrink(&mut self.blocks);
        self.len = self.blocks.iter().map(Vec::len).sum();
    }

    /// Inserts an entry before the place.
    #[inline(never)]
    fn put(&mut self, (block, at): Place, entry: (K, V)) -> Place {
        self.len += 1;
        let mut place = (block, at);
        let blocks = self.blocks.len();
        match self.blocks.get_mut(block) {
            None => self.blocks.push(Vec::new()),
            Some(full) if full.len() >= Self::BLOCK => {
                // Keys often arrive in order; their blocks stay full.
                let half = if block + 1 == blocks && at == full.len() { at } else { full.len() / 2 };
                let rest = full.split_off(half);
                if at >= half {
                    place = (block + 1, at - half);
                }
                self.blocks.insert(block + 1, rest);
            }
            Some(_) => {}
        }
        self.blocks[place.0].insert(place.1, entry);
        place
    }

    /// Removes the entry at a place.
    #[inline(never)]
    fn take(&mut self, (block, at): Place) -> (K, V) {
        self.len -= 1;
        let entries = &mut self.blocks[block];
        let entry = entries.remove(at);
        if entries.len() <= Self::BLOCK / 4 {
            shrink(entries);
            self.join(block);
        }
        entry
    }

    /// Joins a block that has few entries with its neighbours, if they have few too. So the list
    /// has one block for each eighth of a block of entries, whatever was removed.
    #[inline(never)]
    fn join(&mut self, block: usize) {
        for first in [block, block.wrapping_sub(1)] {
            let Some([one, two, ..]) = self.blocks.get_mut(first..) else { continue };
            if one.len() + two.len() <= Self::BLOCK / 2 {
                one.append(two);
                self.blocks.remove(first + 1);
            }
        }
        if self.blocks.get(block).is_some_and(Vec::is_empty) {
            self.blocks.remove(block);
        }
        shrink(&mut self.blocks);
    }
}

/// Gives up memory of which at most a quarter is in use.
#[inline(never)]
fn shrink<T>(list: &mut Vec<T>) {
    if list.capacity() > 16 && list.len() <= list.capacity() / 4 {
        list.shrink_to(list.len() * 2);
    }
}

impl<K: Ord, V> LargeMap<K, V> {
    /// Returns the place of a key, or the place at which to insert it.
    #[inline(never)]
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        let is_before = |block: &Vec<(K, V)>| block.first().is_some_and(|(first, _)| first.borrow() <= key);
        let block = self.blocks.partition_point(is_before).saturating_sub(1);
        match self
            .blocks
            .get(block)
            .map_or(Err(0), |block| block.binary_search_by(|(other, _)| other.borrow().cmp(key)))
        {
            Ok(at) => Ok((block, at)),
            Err(at) => Err((block, at)),
        }
    }

    /// Returns the place of the first key that is not less, or greater, than `key`.
    fn place_from<Q: Ord + ?Sized>(&self, key: &Q, greater: bool) -> Place
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok((block, at)) => (block, at + usize::from(greater)),
            Err(place) => place,
        }
    }

    /// Iterates over the entries whose keys are in the range, in the order of the keys.
    ///
    /// A range whose end is before its start has no keys.
    #[inline(never)]
    pub fn range<Q: Ord + ?Sized>(&self, keys: impl RangeBounds<Q>) -> LargeIter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let from = match keys.start_bound() {
            Bound::Included(key) => self.place_from(key, false),
            Bound::Excluded(key) => self.place_from(key, true),
            Bound::Unbounded => (0, 0),
        };
        let to = match keys.end_bound() {
            Bound::Included(key) => self.place_from(key, true),
            Bound::Excluded(key) => self.place_from(key, false),
            Bound::Unbounded => (self.blocks.len(), 0),
        };
        let block = |at: usize| self.blocks.get(at).map_or(&[][..], Vec::as_slice);
        if from.0 >= to.0 {
            let entries = if from.0 == to.0 { block(from.0).get(from.1..to.1) } else { None };
            return LargeIter { front: entries.unwrap_or_default().iter(), blocks: [].iter(), back: [].iter() };
        }
        LargeIter {
            front: block(from.0)[from.1..].iter(),
            blocks: self.blocks[from.0 + 1..to.0].iter(),
            back: block(to.0)[..to.1].iter(),
        }
    }

    /// Returns true if the map has the key.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns the key as the map has it, and its value.
    #[must_use]
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (block, at) = self.find(key).ok()?;
        self.blocks.get(block)?.get(at).map(|(key, value)| (key, value))
    }

    /// Returns the value of a key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (block, at) = self.find(key).ok()?;
        self.blocks.get_mut(block)?.get_mut(at).map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns its previous value.
    #[inline(never)]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((block, at)) => Some(mem::replace(&mut self.blocks[block][at].1, value)),
            Err(place) => {
                self.put(place, (key, value));
                None
            }
        }
    }

    /// Removes a key and returns its value.
    #[inline(never)]
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|place| self.take(place).1)
    }

    /// Removes the smallest key and returns it with its value.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take((0, 0)))
    }

    /// Returns the value of a key. If the map lacks the key, inserts the result of `make`.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (block, at) = self.find(&key).unwrap_or_else(|place| self.put(place, (key, make())));
        &mut self.blocks[block][at].1
    }

    /// Returns the value of a key. If the map lacks the key, inserts the default.
    #[inline(never)]
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }
}

impl<K, V> Default for LargeMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for LargeMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for LargeMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for LargeMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// If a key occurs more than once, the last entry wins.
impl<K: Ord, V> FromIterator<(K, V)> for LargeMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for LargeMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for LargeMap<K, V> {
    type Item = (K, V);
    type IntoIter = Flatten<vec::IntoIter<Vec<(K, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.blocks.into_iter().flatten()
    }
}

impl<'m, K, V> IntoIterator for &'m LargeMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = LargeIter<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the entries of a [`LargeMap`].
#[derive(Debug)]
pub struct LargeIter<'m, K, V> {
    front: slice::Iter<'m, (K, V)>,
    blocks: slice::Iter<'m, Vec<(K, V)>>,
    back: slice::Iter<'m, (K, V)>,
}

impl<K, V> Clone for LargeIter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { front: self.front.clone(), blocks: self.blocks.clone(), back: self.back.clone() }
    }
}

impl<'m, K, V> Iterator for LargeIter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                return Some((key, value));
            }
            match self.blocks.next() {
                Some(block) => self.front = block.iter(),
                None => return self.back.next().map(|(key, value)| (key, value)),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let least = self.front.len() + self.blocks.len() + self.back.len();
        (least, self.blocks.as_slice().is_empty().then_some(least))
    }
}

impl<K, V> DoubleEndedIterator for LargeIter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                return Some((key, value));
            }
            match self.blocks.next_back() {
                Some(block) => self.back = block.iter(),
                None => return self.front.next_back().map(|(key, value)| (key, value)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::string::{String, ToString};

    use super::*;

    impl<K: Ord, V> LargeMap<K, V> {
        /// Checks the promises of the fields, and that memory is in proportion to the entries.
        fn check(&self) {
            assert_eq!(self.len, self.blocks.iter().map(Vec::len).sum::<usize>());
            assert!(self.blocks.iter().all(|block| !block.is_empty() && block.len() <= Self::BLOCK));
            assert!(self.blocks.iter().flatten().is_sorted_by(|(one, _), (two, _)| one < two));
            assert!(self.blocks.len() <= 8 * self.len / Self::BLOCK + 1, "{} blocks", self.blocks.len());
            let room: usize = self.blocks.iter().map(Vec::capacity).sum();
            assert!(room <= 16 * self.len + 16, "{} entries in room for {room}", self.len);
        }
    }

    fn next(random: &mut u64) -> u64 {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    }

    /// Keys of `keys` values, calls that fill and calls that empty in turn.
    fn compare_with_a_btree_map(keys: u64, calls: u64) {
        let (mut map, mut model) = (LargeMap::new(), BTreeMap::new());
        let (mut random, mut largest) = (keys * 2 + 1, 0);
        for call in 0..calls {
            let number = next(&mut random);
            let (key, value) = ((number % keys) as u32, number >> 32);
            let fills = call / (keys * 4) % 2 == 0;
            match number >> 16 & 15 {
                0..=6 if fills => assert_eq!(map.insert(key, value), model.insert(key, value)),
                0..=9 => assert_eq!(map.remove(&key), model.remove(&key)),
                10 => *map.get_or_default(key) = *model.entry(key).or_default(),
                11 if number % keys == 0 => {
                    map.retain(|key, value| (u64::from(*key) ^ *value) % 5 != 0);
                    model.retain(|key, value| (u64::from(*key) ^ *value) % 5 != 0);
                }
                12 if !fills => assert_eq!(map.pop_first(), model.pop_first()),
                13 => assert_eq!(map.get_mut(&key), model.get_mut(&key)),
                14 => {
                    let to = key + (value % 300) as u32;
                    assert!(map.range(key..to).eq(model.range(key..to)));
                    assert!(map.range(key..=to).rev().eq(model.range(key..=to).rev()));
                    let after = (Bound::Excluded(key), Bound::Unbounded);
                    assert_eq!(map.range(after).next(), model.range(after).next());
                    assert!(map.range(..key).next_back() == model.range(..key).next_back());
                }
                _ => assert_eq!(map.get(&key), model.get(&key)),
            }
            assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            assert_eq!(map.first_key_value(), model.first_key_value());
            assert_eq!(map.last_key_value(), model.last_key_value());
            if call % 97 == 0 {
                map.check();
                assert!(map.iter().eq(model.iter()) && map.iter().rev().eq(model.iter().rev()));
                assert!(map.iter().size_hint().0 <= map.len());
            }
            largest = largest.max(map.len() as u64);
        }
        assert!(largest > keys / 3, "{largest} of {keys} keys");
    }

    #[test]
    fn any_calls_give_the_content_of_a_btree_map() {
        compare_with_a_btree_map(61, 10_000);
        compare_with_a_btree_map(2500, 60_000);
    }

    #[test]
    fn keys_in_order_fill_their_blocks() {
        let mut map: LargeMap<u64, u64> = (0..100_000).map(|key| (key, key)).collect();
        map.check();
        assert_eq!(map.blocks.len(), 100_000_usize.div_ceil(LargeMap::<u64, u64>::BLOCK));
        assert!(map.range(54_321..=54_999).map(|(&key, _)| key).eq(54_321..=54_999));
        for key in 0..99_999 {
            assert_eq!(map.remove(&key), Some(key));
        }
        map.check();
        assert_eq!((map.len(), map.blocks.len(), map.into_values().next()), (1, 1, Some(99_999)));
    }

    #[test]
    fn few_keys_that_are_left_share_blocks() {
        let removals: [fn(&mut LargeMap<u64, u64>); 2] = [
            |map| assert!((0..100_000).filter(|key| key % 200 != 0).all(|key| map.remove(&key) == Some(key))),
            |map| map.retain(|key, _| key % 200 == 0),
        ];
        for remove in removals {
            let mut map: LargeMap<u64, u64> = (0..100_000).map(|key| (key, key)).collect();
            remove(&mut map);
            map.check();
            assert!(map.keys().copied().eq((0..100_000).step_by(200)));
        }
    }

    #[test]
    fn any_order_of_keys_is_quick() {
        // Each would move half a million entries, if the map were one list.
        let mut map: LargeMap<u32, u32> = (0..1_000_000).rev().map(|key| (key, key)).collect();
        map.check();
        (0..1_000_000).step_by(2).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
        map.check();
        assert!(map.keys().copied().eq((1..1_000_000).step_by(2)));
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_empty() {
        let map: LargeMap<u32, ()> = (0..1000).map(|key| (key, ())).collect();
        let (from, to) = (Bound::Excluded(700), Bound::Excluded(30));
        assert_eq!(map.range((from, to)).next(), None);
        assert_eq!(map.range((Bound::Excluded(5), Bound::Excluded(5))).next_back(), None);
    }

    #[test]
    fn keys_are_found_by_their_borrowed_form() {
        let entries = [("b".to_string(), 2), ("a".to_string(), 1), ("b".to_string(), 3)];
        let map: LargeMap<String, u8> = entries.into_iter().collect();
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (Some(&1), Some(&3), None));
        assert!(map.contains_key("a") && !map.contains_key("c"));
        assert_eq!(format!("{map:?}"), r#"{"a": 1, "b": 3}"#);
        assert_eq!(map, [("a".to_string(), 1), ("b".to_string(), 3)].into_iter().collect());
        assert!(map.into_values().eq([1, 3]));
    }
}
