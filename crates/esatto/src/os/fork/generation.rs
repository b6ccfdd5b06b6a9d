//! A number for each process in a chain of forks.

use core::sync::atomic::{AtomicU32, Ordering};

/// How many forks, that were noticed, made this process out of another one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in. What waits for the control thread of a parent would do so for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    pub(crate) fn current() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Begins the next one: this process is a child.
    pub(crate) fn advance() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is over.
    pub(crate) fn is_past(self) -> bool {
        self != Self::current()
    }
}
