//! One connection to a service, over a socket or inside the process, with what waits for replies.

#[cfg(feature = "in-process")]
use crate::connection::in_process::LocalLink;
use crate::connection::transport::Reply;
use crate::connection::transport::SocketLink;
use crate::os::Interest;

/// Something that arrived on a link.
#[derive(Debug)]
pub(crate) enum LinkEvent<'a, T> {
    /// Calls can be made from now on.
    Ready,
    /// A reply; the tag is that of its call.
    Reply(&'a mut T, Reply<'a>),
}

/// A connection to one service.
#[derive(Debug)]
pub(crate) enum Link<T> {
    Socket(Box<SocketLink<T>>),
    #[cfg(feature = "in-process")]
    Local(LocalLink<T>),
}

impl<T> Link<T> {
    /// What to wait for, if this is a socket.
    pub(crate) fn interest(&self) -> Option<Interest<'_>> {
        match self {
            Self::Socket(socket) => Some(socket.interest()),
            #[cfg(feature = "in-process")]
            Self::Local(_) => None,
        }
    }
}
