//! When the control thread runs although nobody waits for it: to collect chunks, and to take them from threads that sleep.
//!
//! **Collecting.** Waking a thread costs more than writing all events of a chunk. So a writer that has finished a chunk wakes the control
//! thread only if that sleeps for good. A control thread that was woken looks again every few milliseconds by itself, until once there was nothing to
//! do. Whoever fills a quarter of the memory meanwhile wakes it at once.
//!
//! **Reclaiming.** Each thread that has ever traced keeps a chunk, so a few hundred threads that sleep could leave none to those that work. When
//! chunks become scarce, those of threads that have not traced since the last look are handed over as they are.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::thread;

/// How often chunks are collected while there are any, if the program does not say.
pub(crate) const COLLECTION_INTERVAL: Duration = Duration::from_millis(5);
/// Chunks are sent at once when they fill one part of so many of the memory.
pub(crate) const PARTS: usize = 4;
/// At least as much lies between two looks at the threads.
const RECLAIM_INTERVAL: Duration = Duration::from_millis(5);

/// The control thread looks for chunks by itself.
static COLLECTING: AtomicBool = AtomicBool::new(false);
/// Chunks are scarce: how much so.
static SCARCITY: AtomicU8 = AtomicU8::new(ENOUGH);

const ENOUGH: u8 = 0;
const SCARCE: u8 = 1;
const EXHAUSTED: u8 = 2;

/// Something was committed since the control thread last asked.
static COMMITTED: AtomicBool = AtomicBool::new(false);

/// Says that something was committed.
pub(super) fn note_commit() {
    COMMITTED.store(true, Ordering::Relaxed);
}

/// Whether a finished chunk is found without waking anybody.
pub(super) fn is_collecting() -> bool {
    // Whoever clears it looks for chunks afterwards, under the lock that the writer has just left.
    COLLECTING.load(Ordering::Relaxed)
}

/// Says that chunks are scarce. The control thread is to be woken.
pub(super) fn note_scarcity(exhausted: bool) {
    SCARCITY.fetch_max(if exhausted { EXHAUSTED } else { SCARCE }, Ordering::Relaxed);
}

/// What the control thread remembers of it.
#[derive(Debug)]
pub(super) struct Pace {
    collect_at: Option<Instant>,
    reclaim_at: Option<Instant>,
    last_reclaim: Option<Instant>,
}

impl Pace {
    /// For a control thread that begins: nothing holds of what the one before has said.
    pub(super) fn new() -> Self {
        COLLECTING.store(false, Ordering::Relaxed);
        COMMITTED.store(false, Ordering::Relaxed);
        SCARCITY.store(ENOUGH, Ordering::Relaxed);
        Self { collect_at: None, reclaim_at: None, last_reclaim: None }
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.collect_at, self.reclaim_at].into_iter().flatten().min()
    }

    /// After everything pending was sent: plans the next look. Returns whether to send once more, before it sleeps for good.
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

    /// Takes chunks from threads that sleep, if they are scarce and it is time.
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
        // Before the look: what becomes scarce during it is looked at again.
        let scarcity = SCARCITY.swap(ENOUGH, Ordering::Relaxed);
        let all_idle = thread::reclaim(scarcity == EXHAUSTED);
        // Those who have traced since the last look may sleep from now on: one more look tells.
        self.reclaim_at = (!all_idle && scarcity != ENOUGH).then(|| now + RECLAIM_INTERVAL);
    }
}
