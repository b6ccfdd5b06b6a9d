//! Errors of Chrome JSON.

use std::io;

/// Reason why a file, or the rest of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed.
    #[error("cannot read further at byte {at}: {source}")]
    Read {
        /// Position that was reached.
        at: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file has no list of events.
    #[error("the file has no list \"traceEvents\"")]
    NoEvents,
    /// The list has no event.
    #[error("no element of the list is an event")]
    NoEvent,
    /// A byte that cannot be at its place.
    #[error("byte {at} is {byte:#04x}, where no value of JSON begins")]
    Unexpected {
        /// Its position.
        at: u64,
        /// The byte.
        byte: u8,
    },
    /// An event is too long.
    #[error("the event at byte {at} has more than {limit} bytes")]
    TooLong {
        /// Its begin.
        at: u64,
        /// The limit.
        limit: usize,
    },
    /// A temporary file cannot be used.
    #[error("cannot sort the events in a temporary file: {0}")]
    Sort(io::Error),
}
