//! Sockets that another process connects, for processes that may not do so themselves.

use core::fmt;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::callbacks::shielded;
use crate::os::OwnedFd;

/// A request for a socket that is connected to the producer port of a service.
///
/// The program may answer it at any time, on any thread. A request that is dropped without an
/// answer counts as failed. Another one follows later, after the growing delay for a service that
/// cannot be reached.
#[must_use = "the process is not connected before a socket is delivered"]
pub struct SocketRequest {
    number: u64,
    answered: bool,
    deliver: Deliver,
}

impl SocketRequest {
    /// Hands over a connected stream socket. Another descriptor counts as a failure.
    pub fn deliver(mut self, socket: impl Into<OwnedFd>) {
        self.answer(Some(socket.into()));
    }

    fn answer(&mut self, socket: Option<OwnedFd>) {
        if !mem::replace(&mut self.answered, true) {
            (self.deliver)(self.number, socket);
        }
    }
}

impl Drop for SocketRequest {
    fn drop(&mut self) {
        self.answer(None);
    }
}

impl fmt::Debug for SocketRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketRequest").finish_non_exhaustive()
    }
}

/// A function of the program that gets requests for sockets.
#[derive(Clone)]
pub(crate) struct SocketFactory {
    ask: Arc<dyn Fn(SocketRequest) + Send + Sync>,
    deliver: Deliver,
}

/// Takes the socket that was asked for under a number, or `None` if there is none.
type Deliver = fn(u64, Option<OwnedFd>);

impl SocketFactory {
    pub(crate) fn new(ask: impl Fn(SocketRequest) + Send + Sync + 'static, deliver: Deliver) -> Self {
        Self { ask: Arc::new(ask), deliver }
    }

    /// Asks for a socket, and returns the number under which it will be delivered.
    pub(crate) fn ask(&self) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        shielded(|| (self.ask)(SocketRequest { number, answered: false, deliver: self.deliver }));
        number
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ask, &other.ask)
    }
}

impl fmt::Debug for SocketFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketFactory").finish_non_exhaustive()
    }
}
