//! Counts of what was lost in this process, before a service could know of it.

use core::sync::atomic::{AtomicU64, Ordering};

/// What was lost in this process since it began, and is not marked in a trace. See [`losses`].
///
/// Events that are dropped because shared memory is full are not here: traces say where they are
/// missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Sequences that could not be begun, because 32,767 were alive in their connection: each is a
    /// thread's for one session, and all of its events are lost.
    pub sequences: u64,
    /// Pieces of shared memory that the service took away while they were being written: the events
    /// in them are lost.
    pub chunks: u64,
    /// Names of triggers that were forgotten because too many waited for a connection.
    pub triggers: u64,
}

static SEQUENCES: AtomicU64 = AtomicU64::new(0);
static CHUNKS: AtomicU64 = AtomicU64::new(0);
static TRIGGERS: AtomicU64 = AtomicU64::new(0);

/// Counts what was lost in this process without a mark in a trace. All of it is 0 unless something
/// is wrong.
#[must_use]
pub fn losses() -> Losses {
    Losses {
        sequences: SEQUENCES.load(Ordering::Relaxed),
        chunks: CHUNKS.load(Ordering::Relaxed),
        triggers: TRIGGERS.load(Ordering::Relaxed),
    }
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
