//! [`CallError`]: reasons why a call has no response.

use std::io;
use std::sync::Arc;

use crate::body::FrameworkError;
use crate::{DecodeError, EncodeError};

/// Reason why a call has no response, or a connection ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The request has no encoding. The connection goes on.
    Encode(EncodeError),
    /// The message is longer than 65,536 bytes, or has more than 64 handles. The connection goes
    /// on.
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
        /// Handles of the message.
        handles: usize,
    },
    /// The peer takes no messages, and too many wait for it. The connection goes on.
    Full,
    /// The response is malformed, and the connection is closed.
    Decode(DecodeError),
    /// The peer sent something that the protocol does not allow, and the connection is closed.
    Protocol(&'static str),
    /// The server does not know the method, and says so.
    UnknownMethod,
    /// The bindings of the server answered with this number.
    Framework(i32),
    /// The server closed the connection, and this is its reason.
    Epitaph(i32),
    /// The connection ended.
    Closed,
    /// No response came in time.
    Timeout,
    /// The socket failed.
    Io(Arc<io::Error>),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encode(error) => write!(formatter, "{error}"),
            Self::TooLarge { bytes, handles } => {
                write!(formatter, "the message has {bytes} bytes and {handles} handles; 65536 and 64 are allowed")
            }
            Self::Full => formatter.write_str("the peer reads no messages, and too many wait for it"),
            Self::Decode(error) => write!(formatter, "{error}"),
            Self::Protocol(what) => write!(formatter, "the peer broke the protocol: {what}"),
            Self::UnknownMethod => formatter.write_str("the server does not know the method"),
            Self::Framework(code) => write!(formatter, "the bindings of the server answered with the error {code}"),
            Self::Epitaph(status) => write!(formatter, "the server closed the connection with status {status}"),
            Self::Closed => formatter.write_str("the connection ended"),
            Self::Timeout => formatter.write_str("no response came in time"),
            Self::Io(error) => write!(formatter, "the socket failed: {error}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<EncodeError> for CallError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(Arc::new(error)),
        }
    }
}

impl From<FrameworkError> for CallError {
    fn from(error: FrameworkError) -> Self {
        if error == FrameworkError::UNKNOWN_METHOD { Self::UnknownMethod } else { Self::Framework(error.0) }
    }
}
