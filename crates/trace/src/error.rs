//! What can be wrong with a file.

use core::fmt;

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Bytes from the start of the file, or of what is inside if it is gzipped. For something inside of a
    /// compressed packet: where that packet begins.
    pub offset: u64,
    /// Bytes from the start of what the compressed packet holds.
    pub inside: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inside {
            Some(inside) => write!(f, "byte {inside} inside of the compressed packet at byte {}", self.offset),
            None => write!(f, "byte {}", self.offset),
        }
    }
}

/// Why a file, or the rest of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed.
    #[error("cannot read on at {place}: {source}")]
    Io {
        /// How far reading came.
        place: Place,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is of another kind.
    #[error("not a Perfetto trace: {what} (byte 0 is {first:#04x}, a trace begins with 0x0a)")]
    Foreign {
        /// What it seems to be.
        what: &'static str,
        /// The first byte.
        first: u8,
    },
    /// The file ends inside of a packet.
    #[error("torn: the packet at {place} is {announced} bytes long, but the file ends after {there} of them")]
    Torn {
        /// Where the packet begins.
        place: Place,
        /// How long it should be.
        announced: u64,
        /// How much of it is there.
        there: u64,
    },
    /// The file ends before a packet's length is complete.
    #[error("torn: the file ends inside of the header of the packet at {place}")]
    TornHeader {
        /// Where the packet begins.
        place: Place,
    },
    /// There is something else where a packet should begin.
    #[error("garbage at {place}: {byte:#04x} where a packet should begin (0x0a)")]
    Garbage {
        /// Where.
        place: Place,
        /// What is there.
        byte: u8,
    },
    /// A packet claims to be longer than one can be.
    #[error("garbage at {place}: a packet of {announced} bytes, the limit is {limit}")]
    TooLarge {
        /// Where the packet begins.
        place: Place,
        /// Its length.
        announced: u64,
        /// The limit.
        limit: u64,
    },
    /// What is compressed is damaged.
    #[error("cannot inflate what stands at {place}: {why}")]
    Inflate {
        /// How far it could be inflated.
        place: Place,
        /// What the decompressor said.
        why: String,
    },
    /// The trace inflates to more than this reader accepts.
    #[error("the trace inflates to more than {limit} bytes at {place}")]
    InflatesTooMuch {
        /// The compressed packet.
        place: Place,
        /// The limit.
        limit: u64,
    },
    /// Reading on would cost more than a file of this size may cost.
    #[error(
        "refused to read on at {place}: what is compressed costs more work than a trace of this size may ({limit} bytes)"
    )]
    TooMuchWork {
        /// How far reading came.
        place: Place,
        /// The limit.
        limit: u64,
    },
    /// Compressed packets hold compressed packets hold …
    #[error("compressed packets are nested more than {limit} deep at {place}")]
    NestedTooDeep {
        /// The compressed packet.
        place: Place,
        /// The limit.
        limit: usize,
    },
    /// A packet is no well-formed message.
    #[error("the packet at {place} is malformed at its byte {at}")]
    Malformed {
        /// Where the packet begins.
        place: Place,
        /// Where in the packet the malformed field begins.
        at: u64,
    },
}

impl Error {
    /// Where in the file the trouble is.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Empty | Self::Foreign { .. } => 0,
            Self::Io { place, .. }
            | Self::Torn { place, .. }
            | Self::TornHeader { place }
            | Self::Garbage { place, .. }
            | Self::TooLarge { place, .. }
            | Self::Inflate { place, .. }
            | Self::InflatesTooMuch { place, .. }
            | Self::TooMuchWork { place, .. }
            | Self::NestedTooDeep { place, .. }
            | Self::Malformed { place, .. } => place.offset,
        }
    }

    /// A word for the kind of trouble, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Empty => "empty",
            Self::Foreign { .. } => "foreign",
            Self::Torn { .. } | Self::TornHeader { .. } => "torn",
            Self::Garbage { .. } | Self::TooLarge { .. } => "garbage",
            Self::Inflate { .. } => "inflate",
            Self::InflatesTooMuch { .. } | Self::TooMuchWork { .. } | Self::NestedTooDeep { .. } => "limit",
            Self::Malformed { .. } => "malformed",
        }
    }
}
