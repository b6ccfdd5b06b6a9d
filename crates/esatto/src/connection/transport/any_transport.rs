//! A connection over a socket or inside the process.

use super::SocketTransport;
use super::in_process_transport::InProcessTransport;
use crate::os::Interest;

/// A connection to one service, with the calls that wait for replies.
#[derive(Debug)]
pub(crate) enum AnyTransport<T> {
    Socket(Box<SocketTransport<T>>),
    InProcess(InProcessTransport<T>),
}

impl<T> AnyTransport<T> {
    /// Returns what to wait for, if this is a socket.
    pub(crate) fn interest(&self) -> Option<Interest<'_>> {
        match self {
            Self::Socket(socket) => Some(socket.interest()),
            Self::InProcess(_) => None,
        }
    }
}
