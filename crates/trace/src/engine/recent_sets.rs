//! Sets of arguments that came a short time ago, by their values.
//!
//! A processor mostly switches between a few threads, so most sets of arguments come again. To find
//! one here costs less than to make its arguments and to look them up in the table.

use crate::tables::Row;

/// Number of places at first, and at most.
const MIN_PLACES: usize = 1 << 10;
const MAX_PLACES: usize = 1 << 15;

/// The values of all arguments of an event.
pub(super) type Values = [u64; 4];

/// Sets of events of one kind. Two events with the same values have the same arguments.
#[derive(Debug, Default)]
pub(crate) struct RecentSets {
    /// A set is in the place that its values give it. A newer one replaces it.
    places: Vec<(Values, Option<Row>)>,
    /// Sets that were not found since there are so many places.
    misses: usize,
}

impl RecentSets {
    pub(super) fn get(&self, values: &Values) -> Option<Row> {
        let (found, set) = self.places.get(self.place(values))?;
        set.filter(|_| found == values)
    }

    /// Remembers a set that was not found.
    pub(super) fn insert(&mut self, values: Values, set: Row) {
        self.misses += 1;
        if self.misses > self.places.len() && self.places.len() < MAX_PLACES {
            let places = (self.places.len() * 2).max(MIN_PLACES);
            self.places = vec![([0; 4], None); places];
            self.misses = 0;
        }
        let place = self.place(&values);
        self.places[place] = (values, Some(set));
    }

    /// The author of a trace can give all sets the same place. Then none is found here.
    fn place(&self, values: &Values) -> usize {
        /// An odd number whose bits look random: 2^64 / φ.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash = values.iter().fold(0_u64, |hash, v| (hash.rotate_left(23) ^ v).wrapping_mul(MULTIPLIER));
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
        assert_eq!(sets.get(&values(0)), None);
        let mut found = 0;
        for number in 0..200_000_u64 {
            sets.insert(values(number), Row::new(number as usize));
            assert_eq!(sets.get(&values(number)), Some(Row::new(number as usize)));
            let older = number / 2;
            if let Some(set) = sets.get(&values(older)) {
                assert_eq!(set, Row::new(older as usize));
                found += 1;
            }
        }
        assert!(found > 10_000 && sets.places.len() == MAX_PLACES, "{found}");
    }

    #[test]
    fn large_numbers_have_no_value() {
        assert_eq!(both(-1, 2), Some(0xffff_ffff_0000_0002));
        assert_ne!(both(0, -1), both(-1, -1));
        assert_eq!((both(1 << 31, 0), both(0, -1 << 40)), (None, None));
    }
}
