//! The times at which the control thread wakes by itself to collect chunks.
//!
//! Waking a thread costs more than writing all events of a chunk. So a writer that has finished a
//! chunk wakes the control thread only if that sleeps without a time limit. After a wake-up the
//! control thread looks again every few milliseconds, until it once finds nothing to do. A writer
//! that fills a quarter of the memory meanwhile wakes it at once.

use core::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two collections while there are chunks, by default.
pub(crate) const COLLECTION_INTERVAL: Duration = Duration::from_millis(5);
/// Chunks are sent at once when they fill one of this many parts of the memory.
pub(crate) const PARTS: usize = 4;

/// The control thread looks for chunks by itself.
static COLLECTING: AtomicBool = AtomicBool::new(false);

/// A thread has committed since the control thread last asked.
static COMMITTED: AtomicBool = AtomicBool::new(false);

/// Notes that a thread has committed.
pub(super) fn note_commit() {
    COMMITTED.store(true, Ordering::Relaxed);
}

/// Returns whether the control thread finds a finished chunk without a wake-up.
pub(super) fn is_collecting() -> bool {
    // After clearing it, the control thread looks for chunks, under the lock that the writer has
    // just left.
    COLLECTING.load(Ordering::Relaxed)
}

/// The control thread's part of the state.
#[derive(Debug)]
pub(super) struct Pace {
    collect_at: Option<Instant>,
}

impl Pace {
    /// Makes the state for a control thread that starts, and resets the notes to the previous one.
    pub(super) fn new() -> Self {
        COLLECTING.store(false, Ordering::Relaxed);
        COMMITTED.store(false, Ordering::Relaxed);
        Self { collect_at: None }
    }

    /// Returns when to look again.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.collect_at
    }

    /// Plans the next look, after everything pending was sent. Returns whether to send again before
    /// the control thread sleeps without a time limit.
    pub(super) fn collected(&mut self, now: Instant) -> bool {
        if COMMITTED.swap(false, Ordering::Relaxed) {
            self.collect_at = Some(now + COLLECTION_INTERVAL);
            COLLECTING.store(true, Ordering::Relaxed);
            return false;
        }
        let is_over = self.collect_at.is_some_and(|at| at <= now);
        if is_over {
            self.collect_at = None;
            COLLECTING.store(false, Ordering::Relaxed);
        }
        is_over
    }
}
