//! The errors of this crate.

use std::fmt;

/// Error of encoding or decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A value has no encoding.
    Encode(EncodeError),
    /// Bytes are no encoding of the expected type.
    Decode(DecodeError),
}

/// Value that has no encoding, and where it is.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodeError(Box<Failure>);

/// Place in a message that does not fit the expected type.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Failure>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    reason: Reason,
    /// Byte of the message.
    offset: usize,
    /// Members around the place, from the inside.
    path: Vec<&'static str>,
}

/// Reason why a message and its type do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The message ends before the object does.
    TooFewBytes,
    /// This many bytes follow the last object.
    TooManyBytes(usize),
    /// Fewer handles came than the message names.
    TooFewHandles,
    /// This many handles came that the message does not name.
    TooManyHandles(usize),
    /// The message would have more handles than the transport passes.
    HandleLimit,
    /// The message would be longer than 4 GiB.
    TooLong,
    /// More than 32 levels of objects out of line.
    TooDeep,
    /// Padding contains this byte, and not 0.
    Padding(u8),
    /// A `bool` is this number, and not 0 or 1.
    Bool(u8),
    /// A string is no UTF-8.
    Utf8,
    /// A string or vector has this many bytes or elements, more than the bound.
    TooMany {
        /// Bytes or elements that are there.
        count: u64,
        /// The bound of the type.
        max: u64,
    },
    /// A presence marker is neither 0 nor all ones.
    Presence(u64),
    /// Something is absent that the type requires.
    Absent,
    /// An absent string or vector has a length.
    LengthOfAbsent(u64),
    /// A strict enum has no member of this value.
    UnknownEnum(i128),
    /// Strict bits have no members for these bits.
    UnknownBits(u64),
    /// A union has no member of this ordinal.
    UnknownOrdinal(u64),
    /// The marker of an envelope is neither 0 nor 1.
    EnvelopeMarker(u16),
    /// An envelope holds its value in place although it is too large, or out of line although it
    /// fits.
    EnvelopePlace,
    /// An envelope counts other bytes than its value has.
    EnvelopeBytes {
        /// The count of the envelope.
        counted: u32,
        /// The bytes of its value.
        actual: u64,
    },
    /// An envelope counts other handles than its value has.
    EnvelopeHandles {
        /// The count of the envelope.
        counted: u16,
        /// The handles of its value.
        actual: usize,
    },
    /// The last envelope of a table is empty, so that there are two encodings of one table.
    EmptyEnvelope,
    /// The magic number of the header is not 1.
    Magic(u8),
    /// The header does not say that the message has version 2 of the wire format.
    Version,
    /// The ordinal of a message is 0.
    ZeroOrdinal,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewBytes => formatter.write_str("the message ends here, but the object does not"),
            Self::TooManyBytes(count) => write!(formatter, "{count} bytes follow the last object"),
            Self::TooFewHandles => formatter.write_str("the message names a handle that did not come with it"),
            Self::TooManyHandles(count) => write!(formatter, "{count} handles came that the message does not name"),
            Self::HandleLimit => formatter.write_str("the message has too many handles"),
            Self::TooLong => formatter.write_str("the message is longer than 4 GiB"),
            Self::TooDeep => formatter.write_str("the message has more than 32 levels"),
            Self::Padding(byte) => write!(formatter, "padding contains {byte:#04x}, expected 0"),
            Self::Bool(byte) => write!(formatter, "a bool is {byte}, expected 0 or 1"),
            Self::Utf8 => formatter.write_str("a string is no UTF-8"),
            Self::TooMany { count, max } => write!(formatter, "the length is {count}, the type allows {max}"),
            Self::Presence(marker) => {
                write!(formatter, "a presence marker is {marker:#x}, expected 0 or all ones")
            }
            Self::Absent => formatter.write_str("a required object is absent"),
            Self::LengthOfAbsent(length) => write!(formatter, "an absent object has the length {length}"),
            Self::UnknownEnum(value) => write!(formatter, "the strict enum has no member {value}"),
            Self::UnknownBits(bits) => write!(formatter, "the strict bits have no members for {bits:#x}"),
            Self::UnknownOrdinal(ordinal) => write!(formatter, "the union has no member {ordinal}"),
            Self::EnvelopeMarker(marker) => write!(formatter, "the marker of an envelope is {marker}, expected 0 or 1"),
            Self::EnvelopePlace => formatter.write_str("values of up to 4 bytes, and no others, are in their envelope"),
            Self::EnvelopeBytes { counted, actual } => {
                write!(formatter, "an envelope counts {counted} bytes, its value has {actual}")
            }
            Self::EnvelopeHandles { counted, actual } => {
                write!(formatter, "an envelope counts {counted} handles, its value has {actual}")
            }
            Self::EmptyEnvelope => formatter.write_str("the last envelope of a table is empty"),
            Self::Magic(magic) => write!(formatter, "the magic number is {magic}, expected 1"),
            Self::Version => formatter.write_str("the message is not in version 2 of the wire format"),
            Self::ZeroOrdinal => formatter.write_str("the ordinal of the message is 0"),
        }
    }
}

impl Failure {
    fn write(&self, what: &str, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {what} ")?;
        if self.path.is_empty() {
            formatter.write_str("the message")?;
        }
        for (index, member) in self.path.iter().rev().enumerate() {
            write!(formatter, "{}{member}", if index == 0 { "" } else { " → " })?;
        }
        write!(formatter, " at byte {}: {}", self.offset, self.reason)
    }
}

macro_rules! error {
    ($error:ident, $what:literal) => {
        impl $error {
            /// Makes the error of a place in a message.
            #[cold]
            #[must_use]
            pub fn new(reason: Reason, offset: usize) -> Self {
                Self(Box::new(Failure { reason, offset, path: Vec::new() }))
            }

            /// Adds the member around the place, such as `Point.x`.
            #[cold]
            #[must_use]
            pub fn within(mut self, member: &'static str) -> Self {
                self.0.path.push(member);
                self
            }

            /// Makes the error of a union whose ordinal has no member.
            #[cold]
            #[must_use]
            pub fn unknown_ordinal(ordinal: u64, at: usize) -> Self {
                Self::new(Reason::UnknownOrdinal(ordinal), at)
            }

            /// Makes the error of strict bits without members for these bits.
            #[cold]
            #[must_use]
            pub fn unknown_bits(bits: u64, at: usize) -> Self {
                Self::new(Reason::UnknownBits(bits), at)
            }

            /// Returns the reason.
            #[must_use]
            pub fn reason(&self) -> Reason {
                self.0.reason
            }

            /// Returns the byte of the message at which the object begins.
            #[must_use]
            pub fn offset(&self) -> usize {
                self.0.offset
            }
        }

        impl fmt::Display for $error {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write($what, formatter)
            }
        }

        impl fmt::Debug for $error {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write($what, formatter)
            }
        }

        impl std::error::Error for $error {}
    };
}

error!(EncodeError, "encode");
error!(DecodeError, "decode");

impl DecodeError {
    /// Makes the error of a strict enum that has no such member.
    #[cold]
    #[must_use]
    pub fn unknown_enum(value: impl Into<i128>, at: usize) -> Self {
        Self::new(Reason::UnknownEnum(value.into()), at)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(error) => error.fmt(formatter),
            Self::Decode(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
