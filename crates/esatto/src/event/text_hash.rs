//! A hash for texts that are looked up for each event.

use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;

use esatto_instances::Uncancelled;

/// Makes hashers that need two multiplications for a short text. Two secret numbers are part of the
/// hash, so that an attacker who chooses the texts cannot choose their places in a table.
#[derive(Clone, Debug)]
pub(crate) struct TextHashState {
    seed: u64,
    multiplier: u64,
}

impl Default for TextHashState {
    fn default() -> Self {
        // The first state of a thread asks the system for random bytes.
        let _uncancelled = Uncancelled::begin();
        let random = RandomState::new();
        Self { seed: random.hash_one(0_u8), multiplier: random.hash_one(1_u8) | 1 }
    }
}

impl BuildHasher for TextHashState {
    type Hasher = TextHasher;

    #[inline]
    fn build_hasher(&self) -> TextHasher {
        TextHasher { state: self.seed, multiplier: self.multiplier }
    }
}

/// See [`TextHashState`].
pub(crate) struct TextHasher {
    state: u64,
    multiplier: u64,
}

impl Hasher for TextHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_u64(&mut self, v: u64) {
        let product = u128::from(self.state ^ v) * u128::from(self.multiplier);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_hashes_and_different_ones_do_not() {
        let state = TextHashState::default();
        let hash = |text: &str| state.hash_one(text.as_bytes());
        let texts = ["", "a", "b", "12345678", "123456789", "12345678\0"];
        for (i, a) in texts.iter().enumerate() {
            assert_eq!(hash(a), hash(String::from(*a).as_str()));
            for b in &texts[..i] {
                assert_ne!(hash(a), hash(b), "{a:?}, {b:?}");
            }
        }
    }
}
