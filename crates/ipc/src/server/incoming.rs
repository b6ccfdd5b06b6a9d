//! [`Incoming`]: a call that a `Handler` gets.

use std::fmt;
use std::marker::PhantomData;
use std::time::Instant;

use esatto_protozero::Owned;
use esatto_protozero::service::{Kind, Rpc, method_of};

use super::dispatch::Invocation;
use super::replies::Replies;
use super::reply::Reply;
use crate::foreign_fd::ForeignFd;
use crate::peer::Peer;
use crate::status::{Code, Status};

/// Call of a method, whose request still lies in the receive buffer.
///
/// Dropping it fails the call, unless the method is one-way.
pub struct Incoming<'a, M: Rpc> {
    invocation: Invocation<'a>,
    method: PhantomData<fn() -> M>,
}

impl<'a, M: Rpc> Incoming<'a, M> {
    /// Makes one of a call of this method. Generated code calls it.
    #[must_use]
    pub fn new(invocation: Invocation<'a>) -> Self {
        Self { invocation, method: PhantomData }
    }

    /// Decodes the request.
    ///
    /// # Errors
    ///
    /// The status with which to fail the call.
    pub fn request(&self) -> Result<M::Request, Status> {
        M::Request::decode(self.invocation.args).map_err(|_| {
            let text = format!("the request of {} cannot be decoded", method_of::<M>().full_name);
            Status::new(Code::InvalidArgument, text)
        })
    }

    /// Returns the encoded request.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.invocation.args
    }

    /// Takes the descriptor that came with the request.
    pub fn take_fd(&mut self) -> Option<ForeignFd> {
        self.invocation.fd.take()
    }

    /// Returns the identity of the client.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        self.invocation.peer
    }

    /// Returns the time at which the client gives up.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.invocation.deadline
    }

    /// Returns the number that the client gave the call.
    #[must_use]
    pub fn request_id(&self) -> u64 {
        self.invocation.call.key.request_id
    }

    /// Returns the handle by which a unary call is answered, now or later, on any thread.
    pub fn into_reply(self) -> Reply<M::Reply> {
        const { assert!(matches!(method_of::<M>().kind, Kind::Unary), "a method with one reply") };
        Reply::new(self.invocation.call)
    }

    /// Returns the handle by which a streaming call is answered, now or later, on any thread.
    #[must_use]
    pub fn into_replies(self) -> Replies<M::Reply> {
        const { assert!(matches!(method_of::<M>().kind, Kind::ServerStream), "a method with a stream of replies") };
        Replies::new(self.invocation.call)
    }

    /// Decodes the request and answers a unary call at once.
    pub fn answer(self, answer: impl FnOnce(M::Request) -> Result<M::Reply, Status>) {
        let result = self.request().and_then(answer);
        let reply = self.into_reply();
        match result {
            Ok(message) => reply.send(&message),
            Err(status) => reply.fail(&status),
        }
    }

    /// Fails the call.
    pub fn fail(self, status: &Status) {
        self.invocation.call.fail(status);
    }
}

impl<M: Rpc> fmt::Debug for Incoming<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(&self.invocation).finish()
    }
}
