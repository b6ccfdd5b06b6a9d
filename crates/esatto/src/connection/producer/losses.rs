//! Counts of losses in this process.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::record;

/// Losses since the start of this process. See [`losses`].
///
/// Traces mark the [gaps](Self::gaps), and nothing else in this list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Times that a thread began to lose events because shared memory was full. Each session counts
    /// by itself. [More memory](crate::Builder::shared_memory) or
    /// [`stall`](crate::SessionConfig::stall) avoids them.
    pub gaps: u64,
    /// Sequences that could not be created because their connection had 32,767. A sequence belongs
    /// to one thread and one session; all of its events are lost.
    pub sequences: u64,
    /// Chunks of shared memory that the service took away while they were written: the events in
    /// them are lost.
    pub chunks: u64,
    /// Triggers that were dropped because too many waited for a connection.
    pub triggers: u64,
    /// Ends of slices that were wrong. Either they were not recorded: the guard was dropped on
    /// another thread, or after the guard of a slice around it, or an `end!` would have ended the
    /// slice of a guard. Or the `end!` of a `begin!` inside of a guard was missing. Such a slice
    /// ends with the slice around it. See [`SliceGuard`](crate::SliceGuard).
    pub slice_ends: u64,
}

static GAPS: AtomicU64 = AtomicU64::new(0);
static SEQUENCES: AtomicU64 = AtomicU64::new(0);
static CHUNKS: AtomicU64 = AtomicU64::new(0);
static TRIGGERS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of losses in this process. All are 0 unless something is wrong, or a program
/// traces faster than the service reads.
#[must_use]
pub fn losses() -> Losses {
    Losses {
        gaps: GAPS.load(Ordering::Relaxed),
        sequences: SEQUENCES.load(Ordering::Relaxed),
        chunks: CHUNKS.load(Ordering::Relaxed),
        triggers: TRIGGERS.load(Ordering::Relaxed),
        slice_ends: record::wrong_ends(),
    }
}

pub(crate) fn note_gap() {
    GAPS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn note_sequence() {
    SEQUENCES.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn note_chunk() {
    CHUNKS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn note_triggers(count: usize) {
    TRIGGERS.fetch_add(count as u64, Ordering::Relaxed);
}
