//! The times at which the control thread wakes by itself: to collect chunks, and to take chunks
//! from sleeping threads.
//!
//! **Collecting.** Waking a thread costs more than writing all events of a chunk. So a writer that
//! has finished a chunk wakes the control thread only if that sleeps without a time limit. After a
//! wake-up the control thread looks again every few milliseconds, until it once finds nothing to
//! do. A writer that fills a quarter of the memory meanwhile wakes it at once.
//!
//! **Reclaiming.** Each thread that has ever traced keeps a chunk, so a few hundred sleeping
//! threads could leave none to those that work. When chunks become scarce, the chunks of threads
//! that have not traced since the last look are handed over as they are.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::record;

/// The time between two collections while there are chunks, by default.
pub(crate) const COLLECTION_INTERVAL: Duration = Duration::from_millis(5);
/// Chunks are sent at once when they fill one of this many parts of the memory.
pub(crate) const PARTS: usize = 4;
/// The shortest time between two looks at the threads.
const RECLAIM_INTERVAL: Duration = Duration::from_millis(5);

/// The control thread looks for chunks by itself.
static COLLECTING: AtomicBool = AtomicBool::new(false);
/// How scarce chunks are.
static SCARCITY: AtomicU8 = AtomicU8::new(ENOUGH);

const ENOUGH: u8 = 0;
const SCARCE: u8 = 1;
const EXHAUSTED: u8 = 2;

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

/// Notes that chunks are scarce. The caller has to wake the control thread.
pub(super) fn note_scarcity(exhausted: bool) {
    SCARCITY.fetch_max(if exhausted { EXHAUSTED } else { SCARCE }, Ordering::Relaxed);
}

/// The control thread's part of the state.
#[derive(Debug)]
pub(super) struct Pace {
    collect_at: Option<Instant>,
    reclaim_at: Option<Instant>,
    last_reclaim: Option<Instant>,
}

impl Pace {
    /// Makes the state for a control thread that starts, and resets the notes to the previous one.
    pub(super) fn new() -> Self {
        COLLECTING.store(false, Ordering::Relaxed);
        COMMITTED.store(false, Ordering::Relaxed);
        SCARCITY.store(ENOUGH, Ordering::Relaxed);
        Self { collect_at: None, reclaim_at: None, last_reclaim: None }
    }

    /// Returns when to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.collect_at, self.reclaim_at].into_iter().flatten().min()
    }

    /// Plans the next look, after everything pending was sent. Returns whether to send once more,
    /// before the control thread sleeps without a time limit.
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

    /// Takes chunks from sleeping threads, if chunks are scarce and the interval is over.
    pub(super) fn reclaim(&mut self, now: Instant) {
        let is_second = self.reclaim_at.is_some();
        if !is_second && SCARCITY.load(Ordering::Relaxed) == ENOUGH {
            return;
        }
        let due = self.last_reclaim.map_or(now, |last| last + RECLAIM_INTERVAL);
        if now < due {
            self.reclaim_at = Some(due);
            return;
        }
        self.last_reclaim = Some(now);
        // Before the look: chunks that become scarce during it cause another look.
        let scarcity = SCARCITY.swap(ENOUGH, Ordering::Relaxed);
        let all_idle = record::reclaim(scarcity == EXHAUSTED);
        // Threads that have traced since the last look may sleep from now on. One more look finds
        // them.
        self.reclaim_at = (!all_idle && scarcity != ENOUGH).then(|| now + RECLAIM_INTERVAL);
    }
}
