//! [`Call`]: a call with one reply.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use esatto_protozero::Owned;
use esatto_protozero::service::{Rpc, method_of};

use super::events::Done;
use super::events::Next;
use super::{Channel, Shared};
use crate::call_error::CallError;
use crate::caller::NewCall;
use crate::foreign_fd::ForeignFd;
use crate::scratch::Scratch;

/// Call with one reply, which is not sent yet.
///
/// Send it in one of three ways: [`wait`](Self::wait), [`then`](Self::then), or `.await`.
#[must_use = "the call is not sent: wait, await, or give it a callback"]
pub struct Call<'c, M: Rpc> {
    channel: &'c Channel,
    parts: Parts,
    method: PhantomData<fn() -> M>,
}

/// Request of a call of any kind.
pub(super) struct Parts {
    pub(super) args: Scratch,
    pub(super) fd: Option<OwnedFd>,
    pub(super) timeout: Option<Duration>,
    /// The driver may write it later.
    pub(super) is_deferred: bool,
    is_blocking: bool,
}

impl Parts {
    pub(super) fn new(request: &impl Owned) -> Self {
        Self { args: Scratch::encode(request), fd: None, timeout: None, is_deferred: false, is_blocking: false }
    }

    /// Starts the call, unless too many bytes wait to be sent.
    pub(super) fn start<M: Rpc>(&mut self, shared: &Shared, done: &mut Done) -> Result<u64, CallError> {
        let call = NewCall {
            service: M::SERVICE,
            method_id: M::METHOD,
            args: &self.args,
            fd: &mut self.fd,
            deadline: None,
            window: 0,
            is_blocking: self.is_blocking,
        };
        shared.start(call, self.timeout, self.is_deferred, done)
    }

    /// Starts the call when there is room.
    pub(super) fn start_blocking<M: Rpc>(&mut self, shared: &Shared) -> Result<u64, CallError> {
        loop {
            let mut done = Done::default();
            let started = self.start::<M>(shared, &mut done);
            done.run(shared);
            match started {
                Err(CallError::QueueFull(_)) => shared.wait_for_room(),
                started => return started,
            }
        }
    }

    /// Starts the call when there is room.
    pub(super) fn poll_start<M: Rpc>(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<Result<u64, CallError>> {
        loop {
            let mut done = Done::default();
            let started = self.start::<M>(shared, &mut done);
            done.run(shared);
            match started {
                Err(CallError::QueueFull(_)) => {
                    let mut state = shared.lock();
                    if state.end.is_none() && !state.has_room(&shared.limits) {
                        state.waiting_for_room.push(cx.waker().clone());
                        return Poll::Pending;
                    }
                }
                started => return Poll::Ready(started),
            }
        }
    }
}

impl<'c, M: Rpc> Call<'c, M> {
    /// Makes a call. Generated clients call it.
    pub fn new(channel: &'c Channel, request: &M::Request) -> Self {
        Self { channel, parts: Parts::new(request), method: PhantomData }
    }

    /// Lets the call fail with [`CallError::Timeout`] if it takes longer. The service is told, and
    /// can stop its work.
    #[doc(alias = "deadline")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.timeout = Some(timeout);
        self
    }

    /// Sends a descriptor with the request. It is closed here then.
    pub fn attach(mut self, fd: OwnedFd) -> Self {
        self.parts.fd = Some(fd);
        self
    }

    /// Sends the call and waits for the reply. If nobody drives the channel, this thread does,
    /// which runs callbacks of other calls.
    ///
    /// # Errors
    ///
    /// The reason why there is no reply.
    pub fn wait(self) -> Result<M::Reply, CallError> {
        self.wait_with_fd().map(|(reply, _)| reply)
    }

    /// As [`wait`](Self::wait), with the descriptor that came with the reply.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_with_fd(mut self) -> Result<(M::Reply, Option<ForeignFd>), CallError> {
        let shared = &self.channel.shared;
        self.parts.is_blocking = true;
        let id = self.parts.start_blocking::<M>(shared)?;
        let mut reply = None;
        let fd = shared.wait_unary(id, &mut |body| reply = Some(decode::<M>(body)))?;
        let reply = reply.unwrap_or(Err(CallError::Malformed(method_of::<M>().full_name)))?;
        Ok((reply, fd))
    }

    /// Sends the call. The thread that receives the reply calls `callback`: usually the one that
    /// calls [`Channel::pump`].
    ///
    /// # Errors
    ///
    /// The call could not be sent; `callback` is not called then. [`CallError::QueueFull`] if too
    /// many bytes wait to be sent.
    pub fn then(self, callback: impl FnOnce(Result<M::Reply, CallError>) + Send + 'static) -> Result<(), CallError> {
        self.then_with_fd(|result| callback(result.map(|(reply, _)| reply)))
    }

    /// As [`then`](Self::then), with the descriptor that came with the reply.
    ///
    /// # Errors
    ///
    /// As [`then`](Self::then).
    pub fn then_with_fd(
        mut self,
        callback: impl FnOnce(Result<(M::Reply, Option<ForeignFd>), CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let shared = &self.channel.shared;
        let mut done = Done::default();
        let id = match self.parts.start::<M>(shared, &mut done) {
            Ok(id) => id,
            Err(error) => {
                done.run(shared);
                return Err(error);
            }
        };
        let mut callback = Some(callback);
        let callback = Box::new(move |event: Result<Option<super::events::Arrived>, CallError>| {
            let Some(callback) = callback.take() else { return true };
            match event {
                Ok(Some(arrived)) => callback(decode::<M>(&arrived.body).map(|reply| (reply, arrived.fd))),
                Ok(None) => callback(Err(CallError::Malformed(method_of::<M>().full_name))),
                Err(error) => callback(Err(error)),
            }
            true
        });
        let callback = shared.lock().slots.set_callback(id, callback);
        done.callbacks.extend(callback.map(|callback| (id, callback)));
        done.run(shared);
        Ok(())
    }
}

impl<M: Rpc> Call<'_, M> {
    /// Sends the call when it is first polled. As `.await`, with the descriptor that came with the
    /// reply.
    ///
    /// # Errors
    ///
    /// The reason why there is no reply.
    pub fn await_with_fd(
        self,
    ) -> impl Future<Output = Result<(M::Reply, Option<ForeignFd>), CallError>> + Send + use<M> {
        let mut future = self.into_future();
        poll_fn(move |cx| future.poll_with_fd(cx))
    }
}

impl<M: Rpc> IntoFuture for Call<'_, M> {
    type Output = Result<M::Reply, CallError>;
    type IntoFuture = CallFuture<M>;

    fn into_future(self) -> CallFuture<M> {
        CallFuture { channel: self.channel.clone(), stage: Stage::New(self.parts), method: PhantomData }
    }
}

impl<M: Rpc> fmt::Debug for Call<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&method_of::<M>().full_name).finish()
    }
}

type ReplyWithFd<M> = Result<(<M as Rpc>::Reply, Option<ForeignFd>), CallError>;

/// Call as a future. Dropping it cancels the call.
///
/// It does not read the socket: something must drive the [`Channel`].
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture<M: Rpc> {
    channel: Channel,
    stage: Stage,
    method: PhantomData<fn() -> M>,
}

enum Stage {
    New(Parts),
    Sent(u64),
    Over,
}

impl<M: Rpc> Future for CallFuture<M> {
    type Output = Result<M::Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_with_fd(cx).map_ok(|(reply, _)| reply)
    }
}

impl<M: Rpc> CallFuture<M> {
    fn poll_with_fd(&mut self, cx: &mut Context<'_>) -> Poll<ReplyWithFd<M>> {
        let Self { channel, stage, .. } = self;
        let shared = &channel.shared;
        loop {
            match stage {
                Stage::New(parts) => match parts.poll_start::<M>(shared, cx) {
                    Poll::Ready(Ok(id)) => *stage = Stage::Sent(id),
                    Poll::Ready(Err(error)) => {
                        *stage = Stage::Over;
                        return Poll::Ready(Err(error));
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Sent(id) => {
                    let id = *id;
                    let result = match shared.poll_next(id, cx) {
                        Poll::Ready(Next::Reply(arrived)) => {
                            decode::<M>(&arrived.body).map(|reply| (reply, arrived.fd))
                        }
                        Poll::Ready(Next::End(Err(error))) => Err(error),
                        Poll::Ready(_) => Err(CallError::Malformed(method_of::<M>().full_name)),
                        Poll::Pending => return Poll::Pending,
                    };
                    shared.lock().slots.remove(id);
                    *stage = Stage::Over;
                    return Poll::Ready(result);
                }
                Stage::Over => panic!("polled after its end"),
            }
        }
    }
}

impl<M: Rpc> Drop for CallFuture<M> {
    fn drop(&mut self) {
        if let Stage::Sent(id) = self.stage {
            self.channel.shared.cancel(id);
        }
    }
}

impl<M: Rpc> fmt::Debug for CallFuture<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallFuture").field(&method_of::<M>().full_name).finish()
    }
}

/// Decodes a reply.
pub(super) fn decode<M: Rpc>(body: &[u8]) -> Result<M::Reply, CallError> {
    M::Reply::decode(body).map_err(|_| CallError::Malformed(method_of::<M>().full_name))
}

impl Shared {
    /// Takes the next event of a call, or lets it wake the task.
    pub(super) fn poll_next(&self, id: u64, cx: &mut Context<'_>) -> Poll<Next> {
        match self.next(id) {
            Next::Pending => {
                let mut state = self.lock();
                if state.slots.is_waiting(id) {
                    state.slots.watch(id, cx.waker());
                    return Poll::Pending;
                }
                drop(state);
                Poll::Ready(self.next(id))
            }
            next => Poll::Ready(next),
        }
    }

    /// Forgets a call, and tells the service.
    pub(super) fn cancel(&self, id: u64) {
        let mut done = Done::default();
        let mut state = self.lock();
        state.slots.remove(id);
        let super::State { caller, out, .. } = &mut *state;
        if caller.cancel(id, out) {
            self.flush(&mut state, &mut done);
        }
        drop(state);
        done.run(self);
    }
}
