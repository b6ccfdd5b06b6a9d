//! [`Reply`]: the answer to a unary call.

use std::fmt;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use esatto_protozero::Owned;

use super::open_call::OpenCall;
use crate::scratch::Scratch;
use crate::status::Status;

/// Handle by which a call is answered, on any thread. Dropping it fails the call.
#[must_use = "dropping it fails the call"]
pub struct Reply<T> {
    call: OpenCall,
    fd: Option<OwnedFd>,
    message: PhantomData<fn(T)>,
}

impl<T: Owned> Reply<T> {
    pub(super) fn new(call: OpenCall) -> Self {
        Self { call, fd: None, message: PhantomData }
    }

    /// Sends a descriptor with the reply, if the socket can carry it. It is closed here then.
    pub fn attach(mut self, fd: OwnedFd) -> Self {
        self.fd = Some(fd);
        self
    }

    /// Answers the call. Nothing happens if it was cancelled. If the message does not fit in a
    /// frame, the client gets [`Code::ResourceExhausted`](crate::Code::ResourceExhausted).
    pub fn send(self, message: &T) {
        self.send_bytes(&Scratch::encode(message));
    }

    /// As [`send`](Self::send), with an encoded message.
    pub fn send_bytes(self, message: &[u8]) {
        self.call.answer(message, self.fd);
    }

    /// Fails the call.
    pub fn fail(self, status: &Status) {
        self.call.fail(status);
    }

    /// Returns true if nobody waits for the reply any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Returns `Ready` if nobody waits for the reply any more.
    pub fn poll_cancelled(&self, cx: &Context<'_>) -> Poll<()> {
        self.call.poll_cancelled(cx)
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.call.method.full_name).finish()
    }
}
