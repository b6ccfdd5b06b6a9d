//! [`OneWayCall`]: a call without a reply.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;

use esatto_protozero::service::{Rpc, method_of};

use super::Channel;
use super::call::Parts;
use super::events::Done;
use crate::call_error::CallError;

/// Call without a reply, which is not sent yet.
///
/// It cannot be known if the service received it.
#[must_use = "the call is not sent: call `send`, `send_now` or `send_async`"]
pub struct OneWayCall<'c, M: Rpc> {
    channel: &'c Channel,
    parts: Parts,
    method: PhantomData<fn() -> M>,
}

impl<'c, M: Rpc> OneWayCall<'c, M> {
    /// Makes a call. Generated clients call it.
    pub fn new(channel: &'c Channel, request: &M::Request) -> Self {
        Self { channel, parts: Parts::new(request), method: PhantomData }
    }

    /// Sends a descriptor with the request. It is closed here then.
    pub fn attach(mut self, fd: OwnedFd) -> Self {
        self.parts.fd = Some(fd);
        self
    }

    /// Sends the call. Waits if too many bytes wait to be sent already. The first call of a service
    /// waits for the answer to its bind.
    ///
    /// # Errors
    ///
    /// The call could not be sent.
    pub fn send(mut self) -> Result<(), CallError> {
        let shared = &self.channel.shared;
        let id = self.parts.start_blocking::<M>(shared)?;
        let refusal =
            if shared.wait_until_sent(id) { shared.lock().caller.refusal(M::SERVICE, M::METHOD) } else { None };
        refusal.map_or(Ok(()), Err)
    }

    /// Sends the call without waiting. Until the service is bound, something must drive the
    /// channel.
    ///
    /// # Errors
    ///
    /// The call could not be sent. [`CallError::QueueFull`] if too many bytes wait to be sent.
    pub fn send_now(mut self) -> Result<(), CallError> {
        let mut done = Done::default();
        let started = self.parts.start::<M>(&self.channel.shared, &mut done);
        done.run(&self.channel.shared);
        started.map(drop)
    }

    /// Sends the call when there is room. Something must drive the channel.
    ///
    /// The driver writes it the next time that it runs, together with the calls made until then. It
    /// does not wait for the driver if 64 KiB wait already, if another kind of call is made, or if
    /// the channel is closed or dropped.
    ///
    /// # Errors
    ///
    /// The call could not be sent.
    pub async fn send_async(mut self) -> Result<(), CallError> {
        self.parts.is_deferred = true;
        poll_fn(|cx| self.parts.poll_start::<M>(&self.channel.shared, cx)).await.map(drop)
    }
}

impl<M: Rpc> fmt::Debug for OneWayCall<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OneWayCall").field(&method_of::<M>().full_name).finish()
    }
}
