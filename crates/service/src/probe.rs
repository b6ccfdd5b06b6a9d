//! What a simulator sees of the inside of a step: in which order one call of `handle` scraped and
//! read.
//!
//! Outputs do not tell that, and what a read returns depends on it. In builds without debug
//! assertions nothing is noted.

use core::cell::RefCell;

/// Something that happened inside of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Uncommitted chunks for a session's buffers are copied, in one of several steps; without a
    /// session those of one producer, for all buffers.
    Scrape(Option<u64>),
    /// A session is about to be freed: the scrape under way is given up for a new one.
    ScrapeBeginsAnew(u64),
    /// All uncommitted chunks for a session's buffers are copied.
    ScrapeEnds(u64),
    /// A pass over the buffers of a session is over.
    Read {
        /// The session.
        session: u64,
        /// How it ended.
        end: PassEnd,
    },
    /// A clone is begun: what old content of its source nobody wants in it is gone.
    CloneBegins {
        /// Number of the clone.
        clone: u64,
        /// The session.
        source: u64,
    },
    /// A buffer of the source is copied, or moved.
    CloneTakes {
        /// The clone.
        clone: u64,
        /// Which of the source's buffers.
        index: usize,
    },
    /// A clone becomes a session.
    CloneMade {
        /// The clone.
        clone: u64,
        /// The session it is from now on.
        session: u64,
    },
    /// A clone is given up.
    CloneAbandoned(u64),
    /// Whatever the simulator itself notes.
    Mark(u64),
}

/// Why a reading pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// Every buffer is exhausted.
    Exhausted,
    /// The threshold was reached.
    More,
    /// The work of a turn is done, whatever came out.
    OutOfWork,
    /// The sink took no more, and the packet it did not take is gone.
    Refused,
    /// The sink took not even the packets of the service.
    NotBegun,
}

std::thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    static IS_ON: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Turns notes on or off in this thread.
pub fn enable(on: bool) {
    IS_ON.with(|is_on| is_on.set(on));
}

/// Adds a note.
#[inline]
pub fn note(note: Note) {
    if cfg!(debug_assertions) && IS_ON.with(core::cell::Cell::get) {
        NOTES.with(|notes| notes.borrow_mut().push(note));
    }
}

/// Moves the notes of this thread to the end of `into`.
pub fn take(into: &mut Vec<Note>) {
    NOTES.with(|notes| into.append(&mut notes.borrow_mut()));
}
