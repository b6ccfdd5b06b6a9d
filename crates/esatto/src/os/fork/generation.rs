//! A number for each process in a chain of forks.

use core::sync::atomic::{AtomicU32, Ordering};

/// The number of noticed forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made. In a child, waiting for the parent's control thread
/// would take for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    /// The process that was not forked.
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) fn current() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Begins the next generation, because this process is a child.
    pub(crate) fn advance() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// Returns whether this process is a child of that one.
    pub(crate) fn is_past(self) -> bool {
        self != Self::current()
    }
}
