//! [`Server`]: services and their limits, for any number of connections.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use super::{Dispatch, ServerConnection, ServerLimits};
use crate::error::Error;
use crate::sys::{Listener, PollFd, Stream, poll};

/// Services for the connections of a socket. Each connection gets a clone of `D`.
#[derive(Clone, Debug)]
pub struct Server<D> {
    dispatch: D,
    limits: ServerLimits,
    max_connections: usize,
}

impl<D: Dispatch + Clone> Server<D> {
    /// Makes a server of generated services, with the default limits and at most 256 connections.
    #[must_use]
    pub fn new(dispatch: D) -> Self {
        Self { dispatch, limits: ServerLimits::default(), max_connections: 256 }
    }

    /// Sets the bounds of each connection.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of connections that are served at the same time. Others wait until one ends.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn most_connections(&self) -> usize {
        self.max_connections
    }

    /// Makes a connection of an accepted stream.
    #[must_use]
    pub fn connection(&self, stream: Stream) -> ServerConnection<D> {
        ServerConnection::new(stream, self.dispatch.clone(), self.limits)
    }

    /// Accepts connections and serves each on a thread of its own, forever.
    ///
    /// # Errors
    ///
    /// The reason why no more connections can be accepted.
    pub fn serve_blocking(&self, listener: &Listener) -> Result<(), Error>
    where
        D: Send + 'static,
    {
        let served = Arc::new(AtomicUsize::new(0));
        let acceptor = thread::current();
        loop {
            while served.load(Ordering::Acquire) >= self.max_connections {
                thread::park();
            }
            let Some(stream) = listener.accept()? else {
                match poll(&mut [PollFd::new(listener.as_fd(), false)], None) {
                    Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
                    _ => continue,
                }
            };
            let mut connection = self.connection(stream);
            served.fetch_add(1, Ordering::AcqRel);
            let (end, acceptor) = (Arc::clone(&served), acceptor.clone());
            let end = OnDrop(move || {
                end.fetch_sub(1, Ordering::AcqRel);
                acceptor.unpark();
            });
            thread::Builder::new().name("rpc".to_owned()).spawn(move || {
                let _end = end;
                connection.block();
            })?;
        }
    }
}

/// Calls a function when it is dropped, even by a panic.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
