//! [`ConnectAttempt`]: a connection that is being made, for event loops that must not wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use super::socket::{SockAddr, configure, open};
use super::stream::Stream;
use crate::address::Address;
use crate::error::Error;
use crate::foreign_fd::Disposal;

/// Stream socket that is connecting to a listener. It becomes writable when it is connected or has
/// failed.
#[derive(Debug)]
pub struct ConnectAttempt {
    stream: Stream,
    address: Address,
}

impl ConnectAttempt {
    /// Begins to connect without waiting. It looks up host names, though, which may take long: see
    /// [`Address::to_numeric`].
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] if no process listens on a unix socket, [`Error::Address`] if a host
    /// cannot be resolved.
    pub fn begin(address: &Address) -> Result<Self, Error> {
        let target = SockAddr::new(address)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = open(target.domain(), flags).map_err(failed(address))?;
        let family = address.family();
        configure(&fd, family).map_err(failed(address))?;
        match target.apply_connect(&fd) {
            // An interrupted attempt continues in the background.
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {
                Ok(Self { stream: Stream::new(fd, family), address: address.clone() })
            }
            Err(e) => Err(failed(address)(e)),
        }
    }

    /// The socket. It can be used when [`finish`](Self::finish) has returned it.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// As [`Stream::set_disposal`]: a service can also pass descriptors as soon as it is connected.
    pub fn set_disposal(&mut self, disposal: Arc<dyn Disposal>) {
        self.stream.set_disposal(disposal);
    }

    /// Returns the result. Call it when the socket has become writable.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] with the reason.
    pub fn finish(self) -> Result<Stream, Error> {
        let Self { stream, address } = self;
        sockopt::socket_error(&stream).and_then(|result| result).map_err(failed(&address))?;
        Ok(stream)
    }
}

impl AsFd for ConnectAttempt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn failed(address: &Address) -> impl Fn(Errno) -> Error {
    let address = address.clone();
    move |e| Error::Socket { action: "connect to", address: address.clone(), source: io::Error::from(e) }
}
