//! Errors of trace files.

use core::fmt;

use crate::escape::Line;

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Bytes from the start of the file; in a gzipped file, from the start of its content. For a
    /// position inside a compressed packet: the begin of that packet.
    pub offset: u64,
    /// Bytes from the start of the content of the compressed packet.
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

/// Reason why a file, or the rest of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed.
    #[error("cannot read further at {place}: {source}")]
    Io {
        /// Position that was reached.
        place: Place,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is of another kind.
    #[error("not a Perfetto trace: {what} (byte 0 is {first:#04x}, a trace begins with 0x0a)")]
    Foreign {
        /// The kind that it seems to be.
        what: &'static str,
        /// The first byte.
        first: u8,
    },
    /// The file ends inside of a packet.
    #[error("torn: the packet at {place} is {announced} bytes long, but the file ends after {there} of them")]
    Torn {
        /// Begin of the packet.
        place: Place,
        /// Its announced length.
        announced: u64,
        /// Its length in the file.
        there: u64,
    },
    /// The file ends before a packet's length is complete.
    #[error("torn: the file ends inside of the header of the packet at {place}")]
    TornHeader {
        /// Begin of the packet.
        place: Place,
    },
    /// A byte that cannot begin a packet.
    #[error("garbage at {place}: {byte:#04x} where a packet should begin (0x0a)")]
    Garbage {
        /// Its position.
        place: Place,
        /// The byte.
        byte: u8,
    },
    /// A packet announces more bytes than it can have.
    #[error("garbage at {place}: a packet of {announced} bytes, the limit is {limit}")]
    TooLarge {
        /// Begin of the packet.
        place: Place,
        /// Its announced length.
        announced: u64,
        /// The limit.
        limit: u64,
    },
    /// Compressed data is damaged.
    #[error("cannot inflate the data at {place}: {why}")]
    Inflate {
        /// Position up to which it could be inflated.
        place: Place,
        /// The error of the decompressor.
        why: String,
    },
    /// The trace inflates to more bytes than this reader accepts.
    #[error("the trace inflates to more than {limit} bytes at {place}")]
    InflatesTooMuch {
        /// The compressed packet.
        place: Place,
        /// The limit.
        limit: u64,
    },
    /// Reading further would cost more than a file of this size may cost.
    #[error(
        "stopped reading at {place}: the compressed data costs more work than a trace of this size may cost ({limit} bytes)"
    )]
    TooMuchWork {
        /// Position that was reached.
        place: Place,
        /// The limit.
        limit: u64,
    },
    /// Compressed packets are nested too deeply.
    #[error("compressed packets are nested more than {limit} deep at {place}")]
    NestedTooDeep {
        /// The compressed packet.
        place: Place,
        /// The limit.
        limit: usize,
    },
    /// A temporary file could not be written or read.
    #[error(
        "the trace could not be read wholly, because the temporary file in {} could not be written: {why}",
        Line(folder)
    )]
    TemporaryFile {
        /// The folder of the file.
        folder: String,
        /// The error of the system.
        why: String,
    },
    /// A trace that is read together with others has this error.
    #[error("{}: {error}", Line(name))]
    InPart {
        /// Its name.
        name: String,
        /// The error.
        error: Box<Self>,
    },
    /// An archive of traces is damaged.
    #[error("{} is damaged: {why}", Line(name))]
    Archive {
        /// Its name, or that of an entry.
        name: String,
        /// The damage.
        why: String,
    },
    /// A trace, or a part of it, is left out of those that are read together.
    #[error("{} is left out: {why}", Line(name))]
    LeftOut {
        /// Its name.
        name: String,
        /// The reason.
        why: String,
    },
    /// A packet is not a well-formed message.
    #[error("the packet at {place} is malformed at its byte {at}")]
    Malformed {
        /// Begin of the packet.
        place: Place,
        /// Position of the malformed field in the packet.
        at: u64,
    },
}

impl Error {
    /// Creates the error of a temporary file, in which the records of a trace were to be sorted.
    pub fn of_temporary_file(error: &std::io::Error) -> Self {
        let why = error.to_string();
        // The name of the file says nothing; its folder is told anyway.
        let why = why.split_once(" at path ").map_or(&*why, |(why, _)| why).to_owned();
        Self::TemporaryFile { folder: std::env::temp_dir().display().to_string(), why }
    }

    /// Returns whether this is no error of the trace, but one of a temporary file.
    pub fn is_of_temporary_file(&self) -> bool {
        match self {
            Self::TemporaryFile { .. } => true,
            Self::InPart { error, .. } => error.is_of_temporary_file(),
            _ => false,
        }
    }

    /// Returns what to do so that the trace can be read, if the trace is not to blame.
    pub fn remedy(&self) -> Option<&'static str> {
        let why = match self {
            Self::TemporaryFile { why, .. } => why,
            Self::InPart { error, .. } => return error.remedy(),
            _ => return None,
        };
        // EMFILE and ENFILE.
        let lacks_descriptors = ["(os error 24)", "(os error 23)"].iter().any(|code| why.ends_with(code));
        Some(if lacks_descriptors {
            "the trace itself may be sound: raise the limit of descriptors with `ulimit -n`, and read it again"
        } else {
            "the trace itself may be sound: set TMPDIR to a folder with room for about half of the trace's size, and \
             read it again"
        })
    }

    /// Returns the position of the error in the file.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Empty
            | Self::Foreign { .. }
            | Self::TemporaryFile { .. }
            | Self::LeftOut { .. }
            | Self::Archive { .. } => 0,
            Self::InPart { error, .. } => error.offset(),
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

    /// Returns whether nothing after the position of the error was read. Other errors are of one
    /// packet, or of the content of a compressed packet.
    pub fn ends_reading(&self) -> bool {
        match self {
            Self::TooMuchWork { .. } | Self::InflatesTooMuch { .. } | Self::Empty | Self::Foreign { .. } => true,
            Self::InPart { error, .. } => error.ends_reading(),
            Self::Io { place, .. }
            | Self::Torn { place, .. }
            | Self::TornHeader { place }
            | Self::Garbage { place, .. }
            | Self::TooLarge { place, .. }
            | Self::Inflate { place, .. } => place.inside.is_none(),
            Self::NestedTooDeep { .. }
            | Self::TemporaryFile { .. }
            | Self::Malformed { .. }
            | Self::LeftOut { .. }
            | Self::Archive { .. } => false,
        }
    }

    /// Returns whether the file ends within a packet.
    pub fn is_end_of_file(&self) -> bool {
        matches!(self, Self::Torn { place, .. } | Self::TornHeader { place } if place.inside.is_none())
    }

    /// Returns a word for the kind of error, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::TemporaryFile { .. } => "io",
            Self::Empty => "empty",
            Self::Foreign { .. } => "foreign",
            Self::Torn { .. } | Self::TornHeader { .. } => "torn",
            Self::Garbage { .. } | Self::TooLarge { .. } => "garbage",
            Self::Inflate { .. } => "inflate",
            Self::InflatesTooMuch { .. } | Self::TooMuchWork { .. } | Self::NestedTooDeep { .. } => "limit",
            Self::Malformed { .. } => "malformed",
            Self::InPart { error, .. } => error.kind(),
            Self::LeftOut { .. } => "left_out",
            Self::Archive { .. } => "archive",
        }
    }
}
