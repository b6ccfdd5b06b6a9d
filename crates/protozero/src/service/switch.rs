//! [`Switch`]: a word elsewhere that says whether something is on.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Reference to a word, set at run time: off while the word is 0.
#[derive(Debug)]
pub(super) struct Switch(AtomicPtr<AtomicU32>);

/// The word of switches that follow no other. It never changes.
static UNKNOWN: AtomicU32 = AtomicU32::new(1);

impl Switch {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::from_ref(&UNKNOWN).cast_mut()))
    }

    /// Takes the place of an earlier word.
    pub(super) fn follow(&self, word: &'static AtomicU32) {
        self.0.store(ptr::from_ref(word).cast_mut(), Ordering::Release);
    }

    /// Returns false if the word is 0.
    #[inline(always)]
    pub(super) fn may_be_on(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        // SAFETY: only `new` and `follow` set the pointer, from references that live as long as the
        // program. The load acquires, so the word is initialised.
        let word: &'static AtomicU32 = unsafe { &*word };
        word.load(Ordering::Relaxed) != 0
    }
}
