//! Names that each sequence writes once.

use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use esatto_instances::Uncancelled;

/// A text that trace points refer to by number.
///
/// Equal texts have the same number in the whole process. The process assigns the number at the
/// first use. A sequence announces the text the first time it uses the number
/// (`docs/spec/track-event.md` §10).
#[derive(Debug)]
pub struct Name {
    iid: AtomicU32,
    text: &'static str,
}

impl Name {
    /// Makes a name. It costs nothing until it is used in a trace.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self { iid: AtomicU32::new(0), text }
    }

    /// Returns the text.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the number, never 0.
    #[inline(always)]
    pub(crate) fn iid(&self) -> u32 {
        match self.iid.load(Ordering::Relaxed) {
            0 => self.assign(),
            iid => iid,
        }
    }

    #[cold]
    #[inline(never)]
    fn assign(&self) -> u32 {
        let iid = intern(self.text);
        self.iid.store(iid, Ordering::Relaxed);
        iid
    }
}

type Texts = HashMap<&'static str, u32>;

fn lock() -> MutexGuard<'static, Texts> {
    static TEXTS: LazyLock<Mutex<Texts>> = LazyLock::new(|| {
        // The table asks the system for random bytes.
        let _uncancelled = Uncancelled::begin();
        Mutex::default()
    });
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the names while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    lock()
}

/// Returns the number of `text`, the same for each call. Takes a lock and may allocate.
fn intern(text: &'static str) -> u32 {
    let mut texts = lock();
    let next = u32::try_from(texts.len() + 1).unwrap_or(u32::MAX);
    *texts.entry(text).or_insert(next)
}

/// The numbers of one kind of name that one sequence has announced.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    bits: Vec<u64>,
}

impl Announced {
    /// Returns true if the number was announced.
    #[inline(always)]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.bits.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Marks the number as announced. Returns true if it was already. Allocates if the number is
    /// the largest so far.
    #[inline]
    pub(crate) fn check_and_set(&mut self, iid: u32) -> bool {
        let (word, bit) = (iid as usize / 64, 1 << (iid % 64));
        match self.bits.get_mut(word) {
            Some(word) if *word & bit != 0 => true,
            Some(word) => {
                *word |= bit;
                false
            }
            None => self.grow(word, bit),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, word: usize, bit: u64) -> bool {
        self.bits.resize(word + 1, 0);
        self.bits[word] |= bit;
        false
    }

    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_number() {
        static A: Name = Name::new("name::tests::same");
        static B: Name = Name::new("name::tests::same");
        static C: Name = Name::new("name::tests::other");
        assert_eq!(A.iid(), B.iid());
        assert_ne!(A.iid(), C.iid());
        assert_ne!(A.iid(), 0);
    }

    #[test]
    fn a_number_is_announced_once() {
        let mut announced = Announced::default();
        for iid in [1, 63, 64, 1000] {
            assert!(!announced.check_and_set(iid));
            assert!(announced.check_and_set(iid));
        }
        announced.clear();
        assert!(!announced.check_and_set(64));
    }
}
