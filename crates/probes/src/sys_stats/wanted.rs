//! [`Wanted`]: set of the counters that a config lists.

/// Set of the counters that a config lists. An empty list means all counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Bits of the counters below 256; all that the schema knows.
    bits: [u64; 4],
    is_listed: bool,
}

impl Wanted {
    pub(super) fn contains(&self, counter: u16) -> bool {
        let bits = self.bits.get(usize::from(counter / 64)).copied().unwrap_or(0);
        !self.is_listed || bits & (1 << (counter % 64)) != 0
    }
}

impl FromIterator<i32> for Wanted {
    fn from_iter<I: IntoIterator<Item = i32>>(counters: I) -> Self {
        let mut wanted = Self::default();
        for counter in counters {
            wanted.is_listed = true;
            // Counters that newer versions know are not wanted from us.
            let Ok(counter) = u8::try_from(counter) else { continue };
            wanted.bits[usize::from(counter / 64)] |= 1 << (counter % 64);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_wants_everything() {
        let wanted = Wanted::from_iter([]);
        assert!(wanted.contains(1) && wanted.contains(188));
    }

    #[test]
    fn a_list_wants_what_it_names() {
        let wanted = Wanted::from_iter([2, 188, -1, 5000]);
        let all: Vec<u16> = (0..300).filter(|&counter| wanted.contains(counter)).collect();
        assert_eq!(all, [2, 188]);
        assert!(!Wanted::from_iter([5000]).contains(1), "a counter that we do not know is no wish for all");
    }
}
