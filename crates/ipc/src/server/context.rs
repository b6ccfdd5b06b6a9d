//! [`Context`]: what an `async fn` of a service knows about its call.

use std::fmt;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use esatto_protozero::service::Method;

use super::open_call::OpenCall;
use crate::foreign_fd::ForeignFd;
use crate::peer::Peer;

/// Circumstances of a call.
pub struct Context {
    call: OpenCall,
    peer: Arc<Peer>,
    deadline: Option<Instant>,
    /// The connection has a clone, to take back what the method does not take.
    fd: Option<LentFd>,
}

/// Descriptor of a request, until the method takes it.
pub(super) type LentFd = Arc<Mutex<Option<ForeignFd>>>;

pub(super) fn take_fd(lent: &LentFd) -> Option<ForeignFd> {
    lent.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Context {
    pub(super) fn new(call: &OpenCall, peer: &Arc<Peer>, deadline: Option<Instant>, fd: Option<LentFd>) -> Self {
        Self { call: call.without_duty(), peer: Arc::clone(peer), deadline, fd }
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &'static Method {
        self.call.method
    }

    /// Returns the number that the client gave the call.
    #[must_use]
    pub fn request_id(&self) -> u64 {
        self.call.key.request_id
    }

    /// Returns the identity of the client.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the time at which the client gives up.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Takes the descriptor that came with the request.
    ///
    /// Some clients, such as those of Perfetto, do not say to which request a descriptor belongs.
    /// Then a method has it only before its first `await`, because the next call may be the one.
    pub fn take_fd(&self) -> Option<ForeignFd> {
        take_fd(self.fd.as_ref()?)
    }

    /// Sends a descriptor with the next reply, if the socket can carry it. It is closed here then,
    /// or when the call ends.
    pub fn attach(&self, fd: OwnedFd) {
        self.call.attach(fd);
    }

    /// Returns true if nobody waits for the reply any more: a function that computes for long may
    /// ask. A future is dropped soon then.
    ///
    /// While the function runs on the thread that serves its connection, as with
    /// [`serve_blocking`](crate::Server::serve_blocking), nobody reads the socket. Then this tells
    /// of a deadline, and of a UNIX socket that the client closed, but not of a call that it
    /// dropped.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Waits until nobody waits for the reply any more.
    pub async fn cancelled(&self) {
        poll_fn(|cx| self.call.poll_cancelled(cx)).await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.call.method.full_name)
            .field("peer", &self.peer)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
