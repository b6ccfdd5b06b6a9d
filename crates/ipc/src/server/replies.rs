//! [`Replies`]: the answers to a streaming call.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use esatto_protozero::Owned;

use super::open_call::OpenCall;
use crate::callee::SendError;
use crate::scratch::Scratch;
use crate::status::Status;

/// Handle by which a stream of replies is sent, on any thread.
///
/// A `Handler` ends the stream with [`finish`](Self::finish) or [`fail`](Self::fail); dropping it
/// without fails the call. In an `async fn`, the stream ends with the function.
pub struct Replies<T> {
    call: OpenCall,
    message: PhantomData<fn(T)>,
}

impl<T: Owned> Replies<T> {
    pub(super) fn new(call: OpenCall) -> Self {
        Self { call, message: PhantomData }
    }

    /// Sends a reply when the client has room for it.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLarge`].
    pub async fn send(&mut self, message: &T) -> Result<(), SendError> {
        let bytes = Scratch::encode(message);
        poll_fn(|cx| self.poll_send(&bytes, &mut None, cx)).await
    }

    /// Sends a reply with a descriptor when the client has room for it.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLarge`].
    pub async fn send_with_fd(&mut self, message: &T, fd: OwnedFd) -> Result<(), SendError> {
        let (bytes, mut fd) = (Scratch::encode(message), Some(fd));
        poll_fn(|cx| self.poll_send(&bytes, &mut fd, cx)).await
    }

    /// Sends a reply if the client has room for it.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if it has none; [`SendError::Closed`], [`SendError::TooLarge`].
    pub fn try_send(&mut self, message: &T) -> Result<(), SendError> {
        self.call.send(&Scratch::encode(message), &mut None, true)
    }

    /// As [`try_send`](Self::try_send), with a descriptor, which stays in `fd` if there is no room.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Self::try_send).
    pub fn try_send_with_fd(&mut self, message: &T, fd: &mut Option<OwnedFd>) -> Result<(), SendError> {
        self.call.send(&Scratch::encode(message), fd, true)
    }

    /// Sends a reply. Blocks this thread until the client has room for it: do not call it on the
    /// thread that drives the connection.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLarge`].
    pub fn send_blocking(&mut self, message: &T) -> Result<(), SendError> {
        self.send_parked(message, None)
    }

    /// As [`send_blocking`](Self::send_blocking), with a descriptor.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLarge`].
    pub fn send_blocking_with_fd(&mut self, message: &T, fd: OwnedFd) -> Result<(), SendError> {
        self.send_parked(message, Some(fd))
    }

    fn send_parked(&mut self, message: &T, mut fd: Option<OwnedFd>) -> Result<(), SendError> {
        let bytes = Scratch::encode(message);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            match self.poll_send(&bytes, &mut fd, &mut cx) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Returns `Ready` if the client has room for a reply.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`].
    pub fn poll_ready(&self, cx: &Context<'_>) -> Poll<Result<(), SendError>> {
        let shared = &self.call.shared;
        let mut state = shared.lock();
        if !state.callee.is_open(self.call.key) {
            return Poll::Ready(Err(SendError::Closed));
        }
        if state.has_room(self.call.key, &shared.limits) {
            return Poll::Ready(Ok(()));
        }
        state.watch(self.call.key, cx.waker());
        Poll::Pending
    }

    /// Ends the stream.
    pub fn finish(self) {
        self.call.finish();
    }

    /// Sends the last reply, even if the client has no room for it, and ends the stream. If the
    /// message does not fit in a frame, the client gets
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted).
    pub fn finish_with(self, message: &T) {
        self.call.answer(&Scratch::encode(message), None);
    }

    /// Ends the stream with an error.
    pub fn fail(self, status: &Status) {
        self.call.fail(status);
    }

    /// Returns true if nobody waits for replies any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    fn poll_send(
        &mut self,
        bytes: &[u8],
        fd: &mut Option<OwnedFd>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        loop {
            match self.call.send(bytes, fd, true) {
                Err(SendError::Full) => match self.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    poll => return poll,
                },
                sent => return Poll::Ready(sent),
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T> fmt::Debug for Replies<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replies").field(&self.call.method.full_name).finish()
    }
}
