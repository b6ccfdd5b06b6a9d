//! [`SeenThreads`]: the threads that the trace has.

/// Set of thread ids.
///
/// A bit per id: 512 KiB at most, however many threads begin and end while the instance records.
#[derive(Debug, Default)]
pub(crate) struct SeenThreads {
    words: Vec<u64>,
}

/// Ids are below this number on every Linux (`PID_MAX_LIMIT`).
const MAX_THREAD_ID: u32 = 1 << 22;

impl SeenThreads {
    pub(crate) fn contains(&self, id: i32) -> bool {
        let (word, bit) = place(id);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds an id. Ids that no kernel has are left out.
    pub(crate) fn insert(&mut self, id: i32) {
        let (word, bit) = place(id);
        if id.unsigned_abs() > MAX_THREAD_ID {
            return;
        }
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    pub(crate) fn remove(&mut self, id: i32) {
        let (word, bit) = place(id);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !bit;
        }
    }

    /// Removes the ids from `first` to `last`.
    pub(crate) fn remove_range(&mut self, first: i32, last: i32) {
        let after = i32::try_from(self.words.len() * 64).unwrap_or(i32::MAX);
        for id in first.max(0)..last.saturating_add(1).min(after) {
            self.remove(id);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }
}

/// Returns the word of an id, and its bit there.
const fn place(id: i32) -> (usize, u64) {
    let id = id.unsigned_abs();
    ((id / 64) as usize, 1 << (id % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_until_they_are_removed() {
        let mut seen = SeenThreads::default();
        for id in [1, 63, 64, 4_194_304, i32::MAX] {
            seen.insert(id);
        }
        let found = |seen: &SeenThreads| [1, 63, 64, 65, 4_194_304, i32::MAX].map(|id| seen.contains(id));
        assert_eq!(found(&seen), [true, true, true, false, true, false]);
        seen.remove_range(63, 64);
        assert_eq!(found(&seen), [true, false, false, false, true, false]);
        seen.remove_range(-5, i32::MAX);
        assert_eq!(found(&seen), [false; 6]);
    }
}
