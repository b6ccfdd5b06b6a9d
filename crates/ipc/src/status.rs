//! [`Status`]: the reason why a service refused or failed a call.

use core::fmt;

/// Reason of a failed call, as the service tells it: a code, a text for people, and bytes for
/// programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    code: Code,
    text: String,
    details: Vec<u8>,
}

/// Kind of failure. The numbers and names are those of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Code {
    /// The call was cancelled.
    Cancelled = 1,
    /// The reason is not known. The peer may be unable to tell it.
    Unknown = 2,
    /// The request is not valid, in whatever state the service is.
    InvalidArgument = 3,
    /// The deadline passed.
    DeadlineExceeded = 4,
    /// Something that the request names does not exist.
    NotFound = 5,
    /// Something that the request creates exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A limit is reached.
    ResourceExhausted = 8,
    /// The service is not in the state that the call needs.
    FailedPrecondition = 9,
    /// The operation was given up, for instance after a conflict.
    Aborted = 10,
    /// The request names a position beyond the end.
    OutOfRange = 11,
    /// The service lacks this method.
    Unimplemented = 12,
    /// The service is broken.
    Internal = 13,
    /// The service cannot answer now. Another try may succeed.
    Unavailable = 14,
    /// Data is lost.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Self; 16] = [
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code with this number. An unknown number, and 0, give [`Code::Unknown`].
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or(Self::Unknown)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the name, spelled as in gRPC: `NOT_FOUND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Status {
    /// Makes a status with a text for people.
    #[must_use]
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), details: Vec::new() }
    }

    /// Adds bytes for programs, usually an encoded message.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Vec<u8>>) -> Self {
        self.details = details.into();
        self
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the text for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the bytes for programs.
    #[must_use]
    pub fn details(&self) -> &[u8] {
        &self.details
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() { self.code.fmt(f) } else { write!(f, "{} ({})", self.text, self.code) }
    }
}

impl std::error::Error for Status {}

impl From<Code> for Status {
    fn from(code: Code) -> Self {
        Self::new(code, "")
    }
}
