use core::borrow::Borrow;
use core::fmt;

use crate::Map;

/// Ordered set.
#[derive(Clone, PartialEq, Eq)]
pub struct Set<T>(Map<T, ()>);

impl<T> Set<T> {
    /// Makes an empty set. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self(Map::new())
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

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Iterates over the values, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.0.keys()
    }

    /// Keeps the values for which `keep` returns true. Visits and moves each value at most once.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|value, ()| keep(value));
    }
}

impl<T: Ord> Set<T> {
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
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Ord> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::new();
        set.extend(values);
        set
    }
}

impl<T: Ord> Extend<T> for Set<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<T> IntoIterator for Set<T> {
    type Item = T;
    type IntoIter = core::iter::Map<alloc::vec::IntoIter<(T, ())>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(value, ())| value)
    }
}

impl<'s, T> IntoIterator for &'s Set<T> {
    type Item = &'s T;
    type IntoIter = core::iter::Map<crate::Iter<'s, T, ()>, fn((&'s T, &'s ())) -> &'s T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(value, ())| value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_value_is_there_once_and_in_order() {
        let mut set: Set<u8> = [3, 1, 3, 2].into_iter().collect();
        assert_eq!((set.insert(1), set.insert(0), set.remove(&3), set.remove(&3)), (false, true, true, false));
        assert_eq!((set.contains(&2), set.contains(&3), set.len()), (true, false, 3));
        assert_eq!(format!("{set:?}"), "{0, 1, 2}");
        assert_eq!(set.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
