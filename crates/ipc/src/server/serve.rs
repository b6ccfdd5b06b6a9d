//! [`Server`]: services and their limits, for any number of connections.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use super::counters::ServerCounters;
use super::running::Running;
use super::{Dispatch, ServerConnection, ServerLimits};
use crate::error::Error;
use crate::sys::{Listener, PollFd, Stream, WakeFd, poll};

/// Pause after a connection could not be accepted because the process lacks something.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Services for the connections of a socket. Each connection gets a clone of `D`.
///
/// Clones are the same server: [`stop`](Self::stop) stops all of them.
///
/// A handler that panics ends its connection, with all calls of that client, because the state of
/// the connection may be half changed. Their clients get
/// [`CallError::Disconnected`](crate::CallError::Disconnected). Other connections are not affected.
/// A handler that must outlive a panic catches it and returns a [`Status`](crate::Status).
#[doc(alias = "grpc", alias = "service")]
#[derive(Clone, Debug)]
pub struct Server<D> {
    dispatch: D,
    limits: ServerLimits,
    max_connections: usize,
    running: Arc<Running>,
}

impl<D> Server<D> {
    /// Ends all connections, and lets [`serve_blocking`](Self::serve_blocking) and `serve` return.
    /// They serve no more after that.
    ///
    /// Clients see the end of the connection. Futures of open calls are dropped; functions that run
    /// are not interrupted.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Returns the counters over all connections.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.running.counters.read()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn most_connections(&self) -> usize {
        self.max_connections
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn running(&self) -> &Arc<Running> {
        &self.running
    }
}

impl<D: Dispatch + Clone> Server<D> {
    /// Makes a server of generated services, with the default limits and at most 256 connections.
    #[must_use]
    pub fn new(dispatch: D) -> Self {
        let running = Arc::new(Running::default());
        Self { dispatch, limits: ServerLimits::default(), max_connections: 256, running }
    }

    /// Sets the bounds of each connection.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of connections that are served at the same time. Others wait until one ends.
    /// A connection that asks for no service for a second ends when another one waits.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Makes a connection of an accepted stream. It counts into [`counters`](Self::counters), but
    /// [`stop`](Self::stop) does not end it.
    #[must_use]
    pub fn connection(&self, stream: Stream) -> ServerConnection<D> {
        let mut connection = ServerConnection::new(stream, self.dispatch.clone(), self.limits);
        connection.count_into(Arc::clone(&self.running.counters));
        connection
    }

    /// Accepts connections and serves each on a thread of its own, until [`stop`](Self::stop).
    /// Returns after all these threads have ended.
    ///
    /// If the process lacks descriptors, memory or threads, clients wait or are disconnected. The
    /// server goes on.
    ///
    /// # Errors
    ///
    /// The reason why no more connections can be accepted.
    pub fn serve_blocking(&self, listener: &Listener) -> Result<(), Error>
    where
        D: Send + 'static,
    {
        let wake = Arc::new(WakeFd::new()?);
        let waker = Waker::from(Arc::clone(&wake));
        self.running.watch(&waker);
        let result = self.accept(listener, &wake);
        // The stop has forgotten it.
        self.running.watch(&waker);
        while self.running.is_stopped() && self.running.open() > 0 {
            let _ = wait(&wake, None, Some(PAUSE));
        }
        self.running.unwatch(&waker);
        result
    }

    fn accept(&self, listener: &Listener, wake: &WakeFd) -> Result<(), Error>
    where
        D: Send + 'static,
    {
        while !self.running.is_stopped() {
            if self.running.open() >= self.max_connections {
                self.running.evict(listener);
                // If nobody could be sent away, that may be different soon.
                wait(wake, None, Some(PAUSE))?;
                continue;
            }
            match listener.accept() {
                Ok(Some(stream)) => self.serve_on_thread(stream),
                Ok(None) => wait(wake, Some(listener), None)?,
                Err(error) if error.is_shortage() => {
                    self.running.failed();
                    wait(wake, None, Some(PAUSE))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn serve_on_thread(&self, stream: Stream)
    where
        D: Send + 'static,
    {
        let mut connection = self.connection(stream);
        let Some(mut place) = self.running.add(connection.socket()) else { return };
        let spawned = thread::Builder::new().name("rpc".to_owned()).spawn(move || {
            place.ended(&connection.block());
            drop(connection);
        });
        if spawned.is_err() {
            self.running.failed();
        }
    }
}

/// Waits until `wake` is woken, or a client waits, or the time has passed.
fn wait(wake: &WakeFd, listener: Option<&Listener>, timeout: Option<Duration>) -> Result<(), Error> {
    let mut fds = vec![PollFd::new(wake.as_fd(), false)];
    fds.extend(listener.map(|listener| PollFd::new(listener.as_fd(), false)));
    match poll(&mut fds, timeout) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
        _ => wake.reset(),
    }
    Ok(())
}
