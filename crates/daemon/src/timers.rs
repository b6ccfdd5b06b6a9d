//! Timers of an event loop.

use core::hash::Hash;
use std::collections::{BTreeSet, HashMap};

/// A set of timers, each with its own key. Setting a key again moves it.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(u64, K)>,
    by_key: HashMap<K, u64>,
}

impl<K: Copy + Ord + Hash> Timers<K> {
    pub(crate) fn new() -> Self {
        Self { by_time: BTreeSet::new(), by_key: HashMap::new() }
    }

    /// Makes `key` expire at `at_ns`, instead of at an earlier setting.
    pub(crate) fn set(&mut self, key: K, at_ns: u64) {
        self.cancel(key);
        self.by_key.insert(key, at_ns);
        self.by_time.insert((at_ns, key));
    }

    /// Removes `key`. Does nothing if it is not set.
    pub(crate) fn cancel(&mut self, key: K) {
        if let Some(at_ns) = self.by_key.remove(&key) {
            self.by_time.remove(&(at_ns, key));
        }
    }

    /// Returns whether `key` is set.
    pub(crate) fn is_set(&self, key: K) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Returns when the next timer expires.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.by_time.first().map(|(at_ns, _)| *at_ns)
    }

    /// Removes and returns the oldest timer that has expired by `now_ns`.
    pub(crate) fn pop_expired(&mut self, now_ns: u64) -> Option<K> {
        let (at_ns, key) = *self.by_time.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.cancel(key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_of_time_and_each_once() {
        let mut timers = Timers::new();
        timers.set('b', 20);
        timers.set('a', 30);
        timers.set('c', 10);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.pop_expired(9), None);
        assert_eq!(timers.pop_expired(25), Some('c'));
        assert_eq!(timers.pop_expired(25), Some('b'));
        assert_eq!(timers.pop_expired(25), None);
        assert_eq!(timers.next_ns(), Some(30));
    }

    #[test]
    fn setting_again_moves_and_cancelling_removes() {
        let mut timers = Timers::new();
        timers.set(1, 10);
        timers.set(1, 40);
        timers.set(2, 20);
        timers.cancel(2);
        timers.cancel(7);
        assert_eq!(timers.next_ns(), Some(40));
        assert_eq!(timers.pop_expired(100), Some(1));
        assert_eq!(timers.next_ns(), None);
    }
}
