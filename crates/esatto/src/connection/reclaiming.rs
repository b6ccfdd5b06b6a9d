//! Reclaiming of chunks from sleeping threads.
//!
//! Each thread that has ever traced keeps a chunk, so a few hundred sleeping threads could leave
//! none to those that work. When chunks become scarce, the chunks of threads that have not traced
//! since the last look are handed over as they are.

use core::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::record;

/// The shortest time between two looks at the threads.
const RECLAIM_INTERVAL: Duration = Duration::from_millis(5);

/// How scarce chunks are.
static SCARCITY: AtomicU8 = AtomicU8::new(ENOUGH);

const ENOUGH: u8 = 0;
const SCARCE: u8 = 1;
const EXHAUSTED: u8 = 2;

/// Notes that chunks are scarce. The caller has to wake the control thread.
pub(super) fn note_scarcity(exhausted: bool) {
    SCARCITY.fetch_max(if exhausted { EXHAUSTED } else { SCARCE }, Ordering::Relaxed);
}

/// The control thread's part of the state.
#[derive(Debug)]
pub(super) struct Reclaiming {
    next: Option<Instant>,
    last: Option<Instant>,
}

impl Reclaiming {
    /// Makes the state for a control thread that starts, and resets the notes to the previous one.
    pub(super) fn new() -> Self {
        SCARCITY.store(ENOUGH, Ordering::Relaxed);
        Self { next: None, last: None }
    }

    /// Returns when to look again.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Takes chunks from sleeping threads, if chunks are scarce and the interval is over.
    pub(super) fn reclaim(&mut self, now: Instant) {
        let is_second = self.next.is_some();
        if !is_second && SCARCITY.load(Ordering::Relaxed) == ENOUGH {
            return;
        }
        let due = self.last.map_or(now, |last| last + RECLAIM_INTERVAL);
        if now < due {
            self.next = Some(due);
            return;
        }
        self.last = Some(now);
        // Before the look: chunks that become scarce during it cause another look.
        let scarcity = SCARCITY.swap(ENOUGH, Ordering::Relaxed);
        let all_idle = record::reclaim(scarcity == EXHAUSTED);
        // Threads that have traced since the last look may sleep from now on. One more look finds
        // them.
        self.next = (!all_idle && scarcity != ENOUGH).then(|| now + RECLAIM_INTERVAL);
    }
}
