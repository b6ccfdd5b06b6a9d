//! [`StreamCall`]: a call with any number of replies.

use std::fmt;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use esatto_protozero::service::{Rpc, method_of};

use super::Channel;
use super::call::{Parts, decode};
use super::events::Done;
use super::events::{Arrived, Next};
use crate::call_error::CallError;
use crate::foreign_fd::ForeignFd;

/// Call with any number of replies. It is sent when the first reply is asked for, or by
/// [`start`](Self::start).
///
/// Take the replies in one of three ways: blocking with [`next_reply`](Self::next_reply) or as an
/// iterator, with a callback by [`for_each`](Self::for_each), or as a
/// [`Stream`](futures_core::Stream). Dropping it cancels the call.
#[must_use = "the call is not sent before a reply is asked for"]
pub struct StreamCall<'c, M: Rpc> {
    channel: &'c Channel,
    stage: Stage,
    fd: Option<ForeignFd>,
    method: PhantomData<fn() -> M>,
}

enum Stage {
    New(Parts),
    Sent(u64),
    Over,
}

impl<'c, M: Rpc> StreamCall<'c, M> {
    /// Makes a call. Generated clients call it.
    pub fn new(channel: &'c Channel, request: &M::Request) -> Self {
        Self { channel, stage: Stage::New(Parts::new(request)), fd: None, method: PhantomData }
    }

    /// Lets the call fail with [`CallError::Timeout`] if it has not *ended* after this time. Has no
    /// effect after the call was sent.
    #[doc(alias = "deadline")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        if let Stage::New(parts) = &mut self.stage {
            parts.timeout = Some(timeout);
        }
        self
    }

    /// Sends a descriptor with the request. It is closed here then. Has no effect after the call
    /// was sent.
    pub fn attach(mut self, fd: OwnedFd) -> Self {
        if let Stage::New(parts) = &mut self.stage {
            parts.fd = Some(fd);
        }
        self
    }

    /// Sends the call. Waits if too many bytes wait to be sent already.
    ///
    /// # Errors
    ///
    /// The call could not be sent.
    pub fn start(mut self) -> Result<Self, CallError> {
        self.start_blocking()?;
        Ok(self)
    }

    /// Waits for the next reply; `None` at the end.
    ///
    /// # Errors
    ///
    /// The reason why there are no more replies.
    pub fn next_reply(&mut self) -> Result<Option<M::Reply>, CallError> {
        let shared = &self.channel.shared;
        let Some(id) = self.start_blocking()? else { return Ok(None) };
        loop {
            match shared.next(id) {
                Next::Pending => shared.wait_for_event(id, &mut None),
                next => return self.take(next),
            }
        }
    }

    /// Sends the call. The thread that receives a reply calls `callback`, with `Ok(None)` or an
    /// error at the end.
    ///
    /// # Errors
    ///
    /// The call could not be sent; `callback` is not called then. [`CallError::QueueFull`] if too
    /// many bytes wait to be sent.
    pub fn for_each(
        self,
        mut callback: impl FnMut(Result<Option<M::Reply>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        self.for_each_with_fd(move |result| callback(result.map(|reply| reply.map(|(reply, _)| reply))))
    }

    /// As [`for_each`](Self::for_each), with the descriptors that came with the replies.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn for_each_with_fd(
        mut self,
        mut callback: impl FnMut(Result<Option<(M::Reply, Option<ForeignFd>)>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let shared = &self.channel.shared;
        let mut done = Done::default();
        let id = match &mut self.stage {
            Stage::New(parts) => match parts.start::<M>(shared, &mut done) {
                Ok(id) => id,
                Err(error) => {
                    done.run(shared);
                    return Err(error);
                }
            },
            Stage::Sent(id) => *id,
            Stage::Over => return Ok(()),
        };
        self.stage = Stage::Over;
        let callback = Box::new(move |event: Result<Option<Arrived>, CallError>| match event {
            Ok(Some(arrived)) => {
                let reply = decode::<M>(&arrived.body);
                let is_whole = reply.is_ok();
                callback(reply.map(|reply| Some((reply, arrived.fd))));
                is_whole
            }
            end => {
                callback(end.map(|_| None));
                false
            }
        });
        let callback = shared.lock().slots.set_callback(id, callback);
        done.callbacks.extend(callback.map(|callback| (id, callback)));
        done.run(shared);
        Ok(())
    }

    /// Takes the descriptor that came with the newest reply.
    pub fn take_fd(&mut self) -> Option<ForeignFd> {
        self.fd.take()
    }

    /// Polls for the next reply, as [`Stream::poll_next`](futures_core::Stream::poll_next).
    pub fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M::Reply, CallError>>> {
        let shared = &self.channel.shared;
        loop {
            match &mut self.stage {
                Stage::New(parts) => match parts.poll_start::<M>(shared, cx) {
                    Poll::Ready(Ok(id)) => self.stage = Stage::Sent(id),
                    Poll::Ready(Err(error)) => {
                        self.stage = Stage::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Sent(id) => {
                    let Poll::Ready(next) = shared.poll_next(*id, cx) else { return Poll::Pending };
                    return Poll::Ready(self.take(next).transpose());
                }
                Stage::Over => return Poll::Ready(None),
            }
        }
    }

    /// Returns the number of the call; `None` if it is over.
    fn start_blocking(&mut self) -> Result<Option<u64>, CallError> {
        match &mut self.stage {
            Stage::New(parts) => {
                let started = parts.start_blocking::<M>(&self.channel.shared);
                self.stage = started.as_ref().map_or(Stage::Over, |&id| Stage::Sent(id));
                started.map(Some)
            }
            Stage::Sent(id) => Ok(Some(*id)),
            Stage::Over => Ok(None),
        }
    }

    fn take(&mut self, next: Next) -> Result<Option<M::Reply>, CallError> {
        match next {
            Next::Reply(arrived) => {
                let reply = decode::<M>(&arrived.body);
                self.fd = arrived.fd;
                // The reply is taken before the call ends.
                drop((arrived.body, arrived.traced));
                if reply.is_err() {
                    self.cancel();
                }
                reply.map(Some)
            }
            Next::End(end) => {
                self.stage = Stage::Over;
                end.map(|()| None)
            }
            Next::Pending => Ok(None),
        }
    }

    fn cancel(&mut self) {
        if let Stage::Sent(id) = std::mem::replace(&mut self.stage, Stage::Over) {
            self.channel.shared.cancel(id);
        }
    }
}

impl<M: Rpc> Iterator for StreamCall<'_, M> {
    type Item = Result<M::Reply, CallError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_reply().transpose()
    }
}

impl<M: Rpc> futures_core::Stream for StreamCall<'_, M> {
    type Item = Result<M::Reply, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_reply(cx)
    }
}

impl<M: Rpc> Drop for StreamCall<'_, M> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<M: Rpc> fmt::Debug for StreamCall<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamCall").field(&method_of::<M>().full_name).finish()
    }
}
