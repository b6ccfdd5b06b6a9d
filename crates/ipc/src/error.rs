//! [`Error`]: errors of sockets, with the value that was wrong.

use std::fmt;
use std::io;

use crate::address::{Address, AddressError};
use crate::frame_size::{MAX_FRAME, MAX_PAYLOAD};

/// Error of the transport.
///
/// Every variant that a *peer* can cause means "close this connection". None of them affects
/// another connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An address could not be understood.
    Address(AddressError),
    /// Another process accepts connections at this address. It is not replaced.
    AddressInUse(Address),
    /// The path exists and is not a socket. It is not replaced.
    NotASocket(Address),
    /// The path is a socket of another user, which this process may neither use nor replace.
    SocketOfOthers {
        /// The address.
        address: Address,
        /// The owner of the socket file.
        uid: u32,
    },
    /// A system call for this address failed.
    Socket {
        /// Failed action: `bind`, `connect`, …
        action: &'static str,
        /// The address.
        address: Address,
        /// Reason of the failure.
        source: io::Error,
    },
    /// A process of another user listens at this address, where any user may listen. Nothing was
    /// sent.
    Stranger {
        /// The address.
        address: Address,
        /// The user id of the listener; `None` if the system does not report it.
        uid: Option<u32>,
    },
    /// A system call on an established connection failed.
    Io(io::Error),
    /// The peer announced a frame that no receiver accepts (wire-protocol.md §2).
    FrameTooLarge {
        /// Payload length in bytes as announced by the header.
        announced: u32,
    },
    /// No receiver would accept the frame to be sent. Nothing was sent.
    MessageTooLarge {
        /// Size of the whole frame in bytes, header included.
        len: usize,
    },
    /// The peer attached more descriptors than the protocol allows (wire-protocol.md §6).
    TooManyDescriptors,
    /// The peer attached a descriptor, and the [`Disposal`](crate::Disposal) of its connection
    /// accepts no more.
    DescriptorRefused,
    /// This kind of socket cannot carry a descriptor.
    DescriptorsUnsupported,
    /// The peer does not read: more bytes wait for it than this side keeps.
    PeerNotReading {
        /// Bytes that wait to be written.
        queued: usize,
        /// The bound that was exceeded.
        limit: usize,
    },
    /// More bytes are held for the peer, or for all peers of its kind, than this side keeps.
    HoldsTooMuch {
        /// Bytes that are held for this connection.
        held: usize,
        /// The bound for this and other connections together.
        limit: usize,
    },
    /// More replies arrived that the program did not read than this side keeps.
    TooManyReplies {
        /// Bytes that are kept.
        bytes: usize,
    },
    /// The peer began a frame and did not send its rest in time.
    FrameTooSlow,
    /// The peer closed the connection.
    Disconnected,
    /// The service does not expose this port.
    NoSuchService(String),
    /// The service lacks this method, or the port is not bound yet.
    NoSuchMethod(String),
    /// The service rejected a call of this method.
    Rejected(&'static str),
    /// The reply to this method is not the expected message.
    BadReply(&'static str),
    /// The peer did not answer in time.
    Timeout,
}

impl Error {
    /// Returns true if the process or the system lacks descriptors, memory or threads, which may
    /// change soon.
    #[cfg(feature = "server")]
    pub(crate) fn is_shortage(&self) -> bool {
        use rustix::io::Errno;
        let Self::Io(error) = self else { return false };
        let errno = Errno::from_io_error(error);
        errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].contains(&errno))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(e) => e.fmt(f),
            Self::AddressInUse(a) => write!(f, "another service is already listening on {a}"),
            Self::NotASocket(a) => write!(f, "{a} exists and is not a socket; remove it or choose another address"),
            Self::SocketOfOthers { address, uid } => {
                write!(
                    f,
                    "cannot use {address}: this socket belongs to another user, uid {uid}; stop the service of that \
                     user and remove the socket, or choose another address"
                )
            }
            Self::Socket { action, address, source } => write!(f, "cannot {action} {address}: {source}"),
            Self::Stranger { address, uid: Some(uid) } => {
                write!(f, "refused {address}: uid {uid} listens there, and any user may")
            }
            Self::Stranger { address, uid: None } => {
                write!(f, "refused {address}: an unknown user listens there, and any user may")
            }
            Self::Io(e) => write!(f, "socket error: {e}"),
            Self::FrameTooLarge { announced } => {
                write!(f, "peer announced a frame of {announced} bytes (at most {} are allowed)", MAX_PAYLOAD)
            }
            Self::MessageTooLarge { len } => {
                write!(f, "message needs a frame of {len} bytes (at most {} are allowed)", MAX_FRAME)
            }
            Self::TooManyDescriptors => f.write_str("peer sent too many file descriptors at once"),
            Self::DescriptorRefused => {
                f.write_str("peer sent a file descriptor, but too many descriptors of its user wait to be closed")
            }
            Self::DescriptorsUnsupported => f.write_str("file descriptors cannot be sent over this kind of socket"),
            Self::PeerNotReading { queued, limit } => {
                write!(f, "peer does not read: {queued} bytes wait for it (limit {limit})")
            }
            Self::HoldsTooMuch { held, limit } => {
                write!(
                    f,
                    "peer leaves too much unread or unfinished: {held} bytes (limit {limit} for all connections together)"
                )
            }
            Self::TooManyReplies { bytes } => write!(f, "{bytes} bytes of replies were not fetched"),
            Self::FrameTooSlow => f.write_str("the peer did not send the rest of a frame in time"),
            Self::Disconnected => f.write_str("peer closed the connection"),
            Self::NoSuchService(name) => write!(f, "the peer does not offer the service {name}"),
            Self::NoSuchMethod(name) => write!(f, "the peer does not know the method {name}"),
            Self::Rejected(method) => write!(f, "the service rejected {method}"),
            Self::BadReply(method) => write!(f, "the reply to {method} cannot be decoded"),
            Self::Timeout => f.write_str("peer did not answer in time"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address(e) => Some(e),
            Self::Socket { source, .. } | Self::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl From<AddressError> for Error {
    fn from(e: AddressError) -> Self {
        Self::Address(e)
    }
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(e: rustix::io::Errno) -> Self {
        Self::Io(e.into())
    }
}
