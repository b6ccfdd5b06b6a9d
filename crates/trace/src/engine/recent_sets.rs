//! Sets of arguments that came a short time ago, by their values.
//!
//! A processor mostly switches between a few threads, so most sets of arguments come again. To find
//! one here costs less than to make its arguments and to look them up in the table.

use core::hash::{BuildHasher as _, Hasher as _};

use hashbrown::DefaultHashBuilder;

use crate::tables::Row;

/// Number of places at first, and at most: half of a processor's own cache.
const MIN_PLACES: usize = 1 << 8;
const MAX_PLACES: usize = 1 << 14;

/// The values of all arguments of an event.
pub(super) type Values = [u64; 4];

/// Sets of events of one kind. Two events with the same values have the same arguments.
#[derive(Debug, Default)]
pub(crate) struct RecentSets {
    /// A set is in the place that its hash gives it, which holds two. A new one replaces the older.
    places: Vec<[(u64, Option<Row>); 2]>,
    /// Sets that were not found since there are so many places.
    misses: usize,
    /// Keys of the hash: an author of a trace cannot make values with the same hash. So the hash
    /// stands for the values.
    keys: DefaultHashBuilder,
}

impl RecentSets {
    /// Returns the hash of a set's values.
    pub(super) fn hash(&self, values: &Values) -> u64 {
        let mut hasher = self.keys.build_hasher();
        values.iter().for_each(|v| hasher.write_u64(*v));
        hasher.finish()
    }

    pub(super) fn get(&self, hash: u64) -> Option<Row> {
        let [new, old] = self.places.get(self.place(hash))?;
        if new.0 == hash { new.1 } else { old.1.filter(|_| old.0 == hash) }
    }

    /// Remembers a set that was not found.
    pub(super) fn insert(&mut self, hash: u64, set: Row) {
        self.misses += 1;
        if self.misses > self.places.len() && self.places.len() < MAX_PLACES {
            let places = (self.places.len() * 2).max(MIN_PLACES);
            self.places = vec![[(0, None); 2]; places];
            self.misses = 0;
        }
        let place = self.place(hash);
        let [new, old] = &mut self.places[place];
        *old = core::mem::replace(new, (hash, Some(set)));
    }

    fn place(&self, hash: u64) -> usize {
        // The number of places is a power of two.
        (hash >> 40) as usize & self.places.len().wrapping_sub(1)
    }
}

/// Returns two numbers as one value; `None` if they are too large for it.
pub(super) fn both(a: i64, b: i64) -> Option<u64> {
    let word = |v: i64| i32::try_from(v).ok().map(|v| u64::from(u32::from_ne_bytes(v.to_ne_bytes())));
    Some(word(a)? << 32 | word(b)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_found_by_its_own_values_only() {
        let mut sets = RecentSets::default();
        let values = |number: u64| [number % 7, number, number / 3, number % 2];
        let mut found = 0;
        for number in 0..200_000_u64 {
            let hash = sets.hash(&values(number));
            assert_eq!(sets.get(hash), None);
            sets.insert(hash, Row::new(number as usize));
            assert_eq!(sets.get(hash), Some(Row::new(number as usize)));
            let older = number.saturating_sub(number % 10_000);
            if let Some(set) = sets.get(sets.hash(&values(older))) {
                assert_eq!(set, Row::new(older as usize));
                found += 1;
            }
        }
        assert!(found > 100_000 && sets.places.len() == MAX_PLACES, "{found}");
    }

    #[test]
    fn large_numbers_have_no_value() {
        assert_eq!(both(-1, 2), Some(0xffff_ffff_0000_0002));
        assert_ne!(both(0, -1), both(-1, -1));
        assert_eq!((both(1 << 31, 0), both(0, -1 << 40)), (None, None));
    }
}
