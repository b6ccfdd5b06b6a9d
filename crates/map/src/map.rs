use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::{fmt, mem, slice};

/// Map in the order of its keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Map<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Map<K, V> {
    /// Makes an empty map. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Iterates over keys and values, in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.entries.iter())
    }

    /// Iterates over keys and values, in the order of the keys.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut(self.entries.iter_mut())
    }

    /// Iterates over keys and values from a key on, in the order of the keys.
    pub fn iter_from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Ord + Borrow<Q>,
    {
        let (Ok(at) | Err(at)) = self.find(key);
        Iter(self.entries[at..].iter())
    }

    /// Iterates over the keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keep` returns true. Visits and moves each entry at most once.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// Removes one entry.
    #[inline(never)]
    fn take(&mut self, at: usize) -> (K, V) {
        self.entries.remove(at)
    }
}

// None of these functions is inlined: they have many callers, and none of them is hot.
impl<K: Ord, V> Map<K, V> {
    /// Returns the index of a key, or the index at which to insert it.
    #[inline(never)]
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.entries.binary_search_by(|(other, _)| other.borrow().cmp(key))
    }

    /// Returns true if the map has the key.
    #[inline(never)]
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the value of a key.
    #[inline(never)]
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().and_then(|at| self.entries.get(at)).map(|(_, value)| value)
    }

    /// Returns the value of a key.
    #[inline(never)]
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().and_then(|at| self.entries.get_mut(at)).map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns its previous value.
    #[inline(never)]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
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
        self.find(key).ok().map(|at| self.take(at).1)
    }

    /// Returns the value of a key. If the map lacks the key, inserts the result of `make`.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, make()));
                at
            }
        };
        &mut self.entries[at].1
    }

    /// Returns the value of a key. If the map lacks the key, inserts the default.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// If a key occurs more than once, the last entry wins.
impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'m, K, V> IntoIterator for &'m Map<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'m, K, V> IntoIterator for &'m mut Map<K, V> {
    type Item = (&'m K, &'m mut V);
    type IntoIter = IterMut<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// Iterator over the entries of a [`Map`].
#[derive(Debug)]
pub struct Iter<'m, K, V>(slice::Iter<'m, (K, V)>);

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'m, K, V> Iterator for Iter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, value)| (key, value))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// Iterator over the entries of a [`Map`], with mutable values.
#[derive(Debug)]
pub struct IterMut<'m, K, V>(slice::IterMut<'m, (K, V)>);

impl<'m, K, V> Iterator for IterMut<'m, K, V> {
    type Item = (&'m K, &'m mut V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (&*key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for IterMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, value)| (&*key, value))
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::{String, ToString};
    use alloc::{format, vec};

    use super::*;

    #[test]
    fn any_calls_give_the_content_of_a_btree_map() {
        let (mut map, mut model) = (Map::new(), BTreeMap::new());
        let mut random = 7_u64;
        for _ in 0..5000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (key, value) = ((random % 61) as u16, random >> 32);
            match random >> 16 & 7 {
                0..=2 => assert_eq!(map.insert(key, value), model.insert(key, value)),
                3 | 4 => assert_eq!(map.remove(&key), model.remove(&key)),
                5 => *map.get_or_default(key) += *model.entry(key).and_modify(|v| *v += 1).or_insert(1).min(&mut 1),
                6 => {
                    map.retain(|key, value| (u64::from(*key) ^ *value) % 7 != 0);
                    model.retain(|key, value| (u64::from(*key) ^ *value) % 7 != 0);
                }
                _ => assert_eq!(map.get_mut(&key), model.get_mut(&key)),
            }
            assert!(map.iter().eq(model.iter()));
            assert_eq!((map.len(), map.contains_key(&key)), (model.len(), model.contains_key(&key)));
        }
        assert!(map.len() > 10);
    }

    #[test]
    fn keys_are_found_by_their_borrowed_form() {
        let map: Map<String, u8> =
            [("b".to_string(), 2), ("a".to_string(), 1), ("b".to_string(), 3)].into_iter().collect();
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (Some(&1), Some(&3), None));
        assert_eq!(format!("{map:?}"), r#"{"a": 1, "b": 3}"#);
        assert_eq!(map.into_values().collect::<Vec<_>>(), vec![1, 3]);
    }
}
