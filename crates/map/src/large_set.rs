use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::fmt;
use core::iter::{Flatten, Map};
use core::ops::RangeBounds;

use crate::large_map::{LargeIter, LargeMap};

/// Ordered set, for any number of values: a [`LargeMap`] without values.
#[derive(Clone, PartialEq, Eq)]
pub struct LargeSet<T>(LargeMap<T, ()>);

impl<T> LargeSet<T> {
    /// Makes an empty set. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self(LargeMap::new())
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all values and frees their memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Iterates over the values, in order.
    #[must_use]
    pub fn iter(&self) -> LargeSetIter<'_, T> {
        LargeSetIter(self.0.iter())
    }

    /// Returns the smallest value.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.0.first_key_value().map(|(value, ())| value)
    }

    /// Keeps the values for which `keep` returns true. Visits each value once, and moves it at most
    /// twice.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|value, ()| keep(value));
    }
}

impl<T: Ord> LargeSet<T> {
    /// Returns true if the set has the value.
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(value)
    }

    /// Adds a value. Returns `false` if the set had it.
    pub fn insert(&mut self, value: T) -> bool {
        self.0.insert(value, ()).is_none()
    }

    /// Removes a value. Returns `false` if the set lacked it.
    pub fn remove<Q: Ord + ?Sized>(&mut self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(value).is_some()
    }

    /// Iterates over the values in the range, in order.
    ///
    /// A range whose end is before its start has no values.
    pub fn range<Q: Ord + ?Sized>(&self, values: impl RangeBounds<Q>) -> LargeSetIter<'_, T>
    where
        T: Borrow<Q>,
    {
        LargeSetIter(self.0.range(values))
    }
}

impl<T> Default for LargeSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for LargeSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Ord> FromIterator<T> for LargeSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::new();
        set.extend(values);
        set
    }
}

impl<T: Ord> Extend<T> for LargeSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<T> IntoIterator for LargeSet<T> {
    type Item = T;
    type IntoIter = Map<Flatten<vec::IntoIter<Vec<(T, ())>>>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(value, ())| value)
    }
}

impl<'s, T> IntoIterator for &'s LargeSet<T> {
    type Item = &'s T;
    type IntoIter = LargeSetIter<'s, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the values of a [`LargeSet`].
#[derive(Debug)]
pub struct LargeSetIter<'s, T>(LargeIter<'s, T, ()>);

impl<T> Clone for LargeSetIter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'s, T> Iterator for LargeSetIter<'s, T> {
    type Item = &'s T;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(value, ())| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> DoubleEndedIterator for LargeSetIter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(value, ())| value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_value_is_there_once_and_in_order() {
        let mut set: LargeSet<u8> = [3, 1, 3, 2].into_iter().collect();
        assert_eq!((set.insert(1), set.insert(0), set.remove(&3), set.remove(&3)), (false, true, true, false));
        assert_eq!((set.contains(&2), set.contains(&3), set.len(), set.first()), (true, false, 3, Some(&0)));
        assert_eq!(format!("{set:?}"), "{0, 1, 2}");
        assert!(set.range(1..).eq([&1, &2]));
        assert_eq!(set.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
