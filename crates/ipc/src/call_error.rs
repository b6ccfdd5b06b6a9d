//! [`CallError`]: the reason why a call has no reply.

use core::fmt;

use crate::status::{Code, Status};

/// Reason why a call has no reply. Each variant has the full name of the method, such as
/// `Store.Get`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The service refused the call, or failed.
    Status {
        /// The method.
        method: &'static str,
        /// The reason. Its code is [`Code::Unknown`] if the peer cannot tell one.
        status: Status,
    },
    /// The connection ended before the reply.
    Disconnected(&'static str),
    /// The deadline passed before the reply. The service may have done its work nevertheless.
    Timeout(&'static str),
    /// The peer does not offer the service of the method.
    NoSuchService(&'static str),
    /// The peer offers the service, but it lacks the method.
    NoSuchMethod(&'static str),
    /// The request or the replies take more room than there is.
    TooLarge {
        /// The method.
        method: &'static str,
        /// Size in bytes.
        len: usize,
        /// The largest allowed size.
        limit: usize,
    },
    /// The reply is not the expected message.
    Malformed(&'static str),
    /// Too many bytes wait to be sent. Try again when some of them were sent.
    QueueFull(&'static str),
    /// A descriptor cannot be sent over this kind of socket.
    DescriptorsUnsupported(&'static str),
}

impl CallError {
    /// Returns the full name of the method: `Store.Get`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match *self {
            Self::Disconnected(method)
            | Self::Timeout(method)
            | Self::NoSuchService(method)
            | Self::NoSuchMethod(method)
            | Self::Malformed(method)
            | Self::QueueFull(method)
            | Self::DescriptorsUnsupported(method)
            | Self::Status { method, .. }
            | Self::TooLarge { method, .. } => method,
        }
    }

    /// Returns the status that the service sent; `None` for other errors.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        if let Self::Status { status, .. } = self { Some(status) } else { None }
    }

    /// Returns the kind of failure, for programs that treat errors of both sides alike.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Status { status, .. } => status.code(),
            Self::Disconnected(_) => Code::Unavailable,
            Self::Timeout(_) => Code::DeadlineExceeded,
            Self::NoSuchService(_) | Self::NoSuchMethod(_) | Self::DescriptorsUnsupported(_) => Code::Unimplemented,
            Self::TooLarge { .. } | Self::QueueFull(_) => Code::ResourceExhausted,
            Self::Malformed(_) => Code::Internal,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { method, status } => write!(f, "{method} failed: {status}"),
            Self::Disconnected(method) => write!(f, "{method} failed: the connection ended before the reply"),
            Self::Timeout(method) => write!(f, "{method} failed: the deadline passed before the reply"),
            Self::NoSuchService(method) => {
                let service = method.split('.').next().unwrap_or_default();
                write!(f, "{method} failed: the peer does not offer the service {service}")
            }
            Self::NoSuchMethod(method) => write!(f, "{method} failed: the peer's service lacks this method"),
            Self::TooLarge { method, len, limit } => {
                write!(f, "{method} failed: {len} bytes are too many (limit {limit})")
            }
            Self::Malformed(method) => write!(f, "{method} failed: the reply cannot be decoded"),
            Self::QueueFull(method) => write!(f, "{method} failed: too many bytes wait to be sent"),
            Self::DescriptorsUnsupported(method) => {
                write!(f, "{method} failed: file descriptors cannot be sent over this kind of socket")
            }
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Status { status, .. } = self { Some(status) } else { None }
    }
}
