//! [`Call`]: a call of a two-way method.

use core::marker::PhantomData;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use esatto_ipc::CallError as ObservedError;
use esatto_ipc::observed::Traced;

use super::{MAX_OPEN_CALLS, Shared, Slot, State, body_error};
use crate::body::Body;
use crate::call_error::CallError;
use crate::header::Header;
use crate::identity::{Number, sending};
use crate::protocol::{Method, MethodInfo, MethodKind};
use crate::socket::Message;

/// Call of a two-way method. Wait for it or await it.
#[must_use = "the call is sent when it is waited for or awaited"]
pub struct Call<'c, M: Method> {
    pub(super) shared: &'c Shared,
    pub(super) request: &'c <M::Request as Body>::Value,
    pub(super) timeout: Option<Duration>,
    pub(super) sent: Option<Sent>,
    pub(super) method: PhantomData<M>,
}

impl<M: Method> core::fmt::Debug for Call<'_, M> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = M::INFO.traced.full_name;
        formatter.debug_struct("Call").field("method", &name).finish_non_exhaustive()
    }
}

pub(super) struct Sent {
    txid: u32,
    traced: Traced,
}

type Response<M> = <<M as Method>::Response as Body>::Value;

impl<M: Method> Call<'_, M> {
    /// Sets the longest time to [`wait`](Self::wait) for the response.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the call and waits for its response.
    ///
    /// # Errors
    ///
    /// The reason why there is no response.
    pub fn wait(mut self) -> Result<Response<M>, CallError> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let txid = self.send(true)?;
        let waited = self.shared.wait(deadline, |state| take_done(state, txid).map(Ok));
        self.finish(waited.unwrap_or(Err(CallError::Timeout)))
    }

    fn send(&mut self, is_blocking: bool) -> Result<u32, CallError> {
        let (mut bytes, mut handles) = (vec![0; Header::SIZE], Vec::new());
        M::Request::encode(self.request, &mut bytes, &mut handles)?;
        crate::link::check_size(bytes.len(), handles.len())?;
        let info: &'static MethodInfo = M::INFO;
        let mut state = self.shared.lock();
        if let Some(error) = &state.end {
            return Err(error.clone());
        }
        if state.calls.len() >= MAX_OPEN_CALLS {
            return Err(CallError::Full);
        }
        let txid = state.next_txid();
        let number = Number { value: u64::from(txid), kind: MethodKind::TwoWay };
        let body = &bytes[Header::SIZE..];
        let traced = sending(info, &self.shared.connection, number, body, !handles.is_empty(), is_blocking);
        state.calls.insert(txid, Slot::Waiting { ordinal: info.ordinal, waker: None });
        state.wake_driver();
        let header = Header { txid, strictness: info.strictness, ordinal: info.ordinal };
        let sent = self.shared.link.send(header, &mut bytes, &handles);
        let sent = sent.map_err(|error| {
            state.calls.remove(&txid);
            self.shared.reason(&mut state, error)
        });
        drop(state);
        traced.request_sent();
        if let Err(error) = sent {
            traced.failed(1, &observed(&error));
            return Err(error);
        }
        self.sent = Some(Sent { txid, traced });
        Ok(txid)
    }

    fn finish(&mut self, result: Result<Message, CallError>) -> Result<Response<M>, CallError> {
        let Some(Sent { txid, traced }) = self.sent.take() else { return Err(CallError::Closed) };
        match result {
            Ok(message) => {
                let body = &message.bytes[Header::SIZE..];
                let taken = traced.reply_or_error(body, || M::Response::error(body));
                let decoded = M::Response::decode(body, message.handles).map_err(body_error);
                taken.end();
                if matches!(decoded, Err(CallError::Decode(_))) {
                    self.shared.end(CallError::Protocol("a malformed response"));
                }
                decoded
            }
            Err(error) => {
                self.shared.lock().abandon(txid);
                traced.failed(1, &observed(&error));
                Err(error)
            }
        }
    }
}

fn take_done(state: &mut State, txid: u32) -> Option<Message> {
    if !matches!(state.calls.get(&txid), Some(Slot::Done(_))) {
        return None;
    }
    match state.calls.remove(&txid) {
        Some(Slot::Done(message)) => Some(message),
        _ => None,
    }
}

/// Returns the reason of a failure as hooks know it.
fn observed(error: &CallError) -> ObservedError {
    match error {
        CallError::Closed | CallError::Epitaph(_) | CallError::Io(_) | CallError::Protocol(_) => {
            ObservedError::Disconnected("")
        }
        CallError::Timeout => ObservedError::Timeout(""),
        _ => ObservedError::QueueFull(""),
    }
}

impl<M: Method> Future for Call<'_, M> {
    type Output = Result<Response<M>, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let txid = match &this.sent {
            Some(sent) => sent.txid,
            None => match this.send(false) {
                Ok(txid) => txid,
                Err(error) => return Poll::Ready(Err(error)),
            },
        };
        let mut state = this.shared.lock();
        let result = match take_done(&mut state, txid) {
            Some(message) => Ok(message),
            None => match &state.end {
                Some(error) => Err(error.clone()),
                None => {
                    if let Some(Slot::Waiting { waker, .. }) = state.calls.get_mut(&txid) {
                        *waker = Some(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
            },
        };
        drop(state);
        Poll::Ready(this.finish(result))
    }
}

impl<M: Method> Unpin for Call<'_, M> {}

impl<M: Method> Drop for Call<'_, M> {
    fn drop(&mut self) {
        if let Some(Sent { txid, traced }) = self.sent.take() {
            self.shared.lock().abandon(txid);
            traced.cancelled();
        }
    }
}
