//! Relay that lets the producers of one machine talk to the service of another
//! (`docs/spec/wire-protocol.md` §16).
//!
//! ```text
//!            ┌──────────────── relay, one thread ────────────────┐
//! producer ──┤ unix socket ─▶ Pipe ─▶ ┐                          │
//!            │             ◀─ Pipe ◀─ ┴ a Pair per producer ─────┼──▶ TCP or vsock ──▶ service
//!            │ our machine and clocks ──────────── Control ──────┼──▶
//!            └───────────────────────────────────────────────────┘
//! ```
//!
//! The relay does not parse the bytes. At most [`byte_pipe::MAX_WAITING`] of them wait in each
//! direction, so a slow end slows down the other end. While the service cannot be reached, the
//! relay closes the connections of producers, which try again later.

mod byte_pipe;
mod connect;
mod connection_pair;
mod control_connection;
mod event_loop;
mod handshake;
mod machine_identity;
mod name_resolver;
mod options;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use esatto_ipc::{Address, Listener};

pub(crate) use self::machine_identity::MACHINE_ID_HINT;
pub use self::options::RelayOptions;
use crate::daemon::Stopper;
use crate::error::Error;
use crate::wakeup::Wakeup;

use self::event_loop::RelayLoop;

/// A relay whose socket exists. Producers can connect already; the relay serves them once it runs.
#[derive(Debug)]
pub struct Relay {
    event_loop: RelayLoop,
    wake: Arc<Wakeup>,
}

impl Relay {
    /// Creates the socket. Replaces the file of a socket on which no process listens. Waits for the
    /// name of the service to be looked up, but not for the service.
    ///
    /// # Errors
    ///
    /// The socket cannot be created, or its address is the one to forward to.
    pub fn bind(options: RelayOptions) -> Result<Self, Error> {
        Self::open(options, None)
    }

    /// Like [`bind`](Self::bind), but with a socket that exists already, if there is one. It
    /// replaces [`RelayOptions::listen`].
    pub(crate) fn open(mut options: RelayOptions, inherited: Option<Listener>) -> Result<Self, Error> {
        if let Some(listener) = &inherited {
            options.listen = listener.address().clone();
        }
        if options.listen == options.service {
            return Err(Error::RelayToItself(options.listen));
        }
        let wake = Arc::new(Wakeup::new().map_err(Error::system("create an eventfd"))?);
        // Producers can connect only after the file has its group and mode.
        let prepare = |path: &Path| {
            let failed = |source| Error::Permissions { path: path.display().to_string(), source };
            options.permissions.map_or(Ok(()), |access| access.apply(path).map_err(failed))
        };
        let listener = match inherited {
            Some(listener) => listener,
            None => Listener::bind_with(&options.listen, prepare)?,
        };
        Ok(Self { event_loop: RelayLoop::new(listener, options, Arc::clone(&wake))?, wake })
    }

    /// Returns the address at which producers connect.
    pub(crate) fn address(&self) -> &Address {
        self.event_loop.address()
    }

    /// Ends the relay as soon as this descriptor is readable.
    pub(crate) fn stop_when_readable(&mut self, fd: OwnedFd) -> Result<(), Error> {
        self.event_loop.stop_when_readable(fd)
    }

    /// Forwards until `stopper` is used. Blocks.
    ///
    /// # Errors
    ///
    /// The operating system refuses to wait for events.
    pub fn run(self) -> Result<(), Error> {
        self.event_loop.run()
    }

    /// Returns a handle that ends the relay from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.wake)
    }

    /// Forwards on a new thread until the handle is dropped.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn spawn_thread(self) -> Result<RelayHandle, Error> {
        let stopper = self.stopper();
        let body = move || {
            if let Err(e) = self.event_loop.run() {
                log::error!("the relay has failed: {e}");
            }
        };
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(body);
        Ok(RelayHandle { thread: Some(thread.map_err(Error::system("start a thread"))?), stopper })
    }
}

/// A relay that runs on a thread of this process. Dropping the handle stops it.
#[derive(Debug)]
pub struct RelayHandle {
    thread: Option<JoinHandle<()>>,
    stopper: Stopper,
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                log::error!("the thread of the relay has panicked");
            }
        }
    }
}
