//! [`Channel`]: the client's end of a connection, for generated clients.
//!
//! A call can be waited for or awaited. Threads that wait read the socket themselves, one at a
//! time. Futures need a driver: [`Channel::drive`] on any runtime.

mod call;
#[cfg(feature = "tokio")]
mod tokio;

use core::marker::PhantomData;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use esatto_ipc::observed::{Connection, new_seed};
use esatto_ipc::{Interest, Readiness};

pub use self::call::Call;
use crate::body::{Body, BodyError};
use crate::call_error::CallError;
use crate::handle::ClientEnd;
use crate::header::{EPITAPH, Header, Strictness};
use crate::identity::{HELLO, Number, received, sending};
use crate::link::{Link, MAX_WAITING_BYTES};
use crate::protocol::{Method, MethodKind, Openness, Protocol};
use crate::server::MESSAGES_PER_TURN;
use crate::socket::{Inbox, Message, Received, Socket, cost};
use crate::wire::decode;

/// Events that may wait until the program takes them.
pub const MAX_WAITING_EVENTS: usize = 1024;

/// Calls that may wait for their responses.
pub const MAX_OPEN_CALLS: usize = 65_536;

/// Client's end of a connection. Clones use the same connection, which ends with the last of them.
pub struct Channel<P> {
    shared: Arc<Shared>,
    protocol: PhantomData<fn() -> P>,
}

struct Shared {
    link: Link,
    connection: Connection,
    openness: Openness,
    state: Mutex<State>,
    /// A response, an event or the end came.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    inbox: Inbox,
    calls: BTreeMap<u32, Slot>,
    last_txid: u32,
    one_ways: u64,
    events: VecDeque<(Header, Message, u64)>,
    event_count: u64,
    /// Sum of the cost of the events that wait.
    event_cost: usize,
    event_waker: Option<Waker>,
    /// Of the driver, which reads on when the program takes an event, or calls.
    driver_waker: Option<Waker>,
    /// A thread waits for the socket.
    has_reader: bool,
    end: Option<CallError>,
}

enum Slot {
    Waiting {
        ordinal: u64,
        waker: Option<Waker>,
    },
    /// The program does not wait any more. The response is dropped.
    Abandoned {
        ordinal: u64,
    },
    Done(Message),
}

impl<P: Protocol> Channel<P> {
    /// Takes the client's end of a connection.
    ///
    /// # Errors
    ///
    /// It is no UNIX socket of packets or stream.
    pub fn new(end: ClientEnd<P>) -> io::Result<Self> {
        let link = Link::new(Socket::new(end.into())?);
        let seed = if cfg!(feature = "trace") { new_seed() } else { 0 };
        let connection = Connection::new(seed);
        if seed != 0 {
            let header = Header { txid: 0, strictness: Strictness::Flexible, ordinal: HELLO };
            let mut hello = [0; Header::SIZE + 8];
            hello[Header::SIZE..].copy_from_slice(&seed.to_le_bytes());
            // If the server is gone, the first call says so.
            let _ = link.send(header, &mut hello, &[]);
        }
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Shared { link, connection, openness: P::OPENNESS, state, changed };
        Ok(Self { shared: Arc::new(shared), protocol: PhantomData })
    }

    /// Begins a call of a two-way method. It is sent when the call is waited for or awaited.
    pub fn call<'c, M: Method>(&'c self, request: &'c <M::Request as Body>::Value) -> Call<'c, M> {
        Call { shared: &self.shared, request, timeout: None, sent: None, method: PhantomData }
    }

    /// Sends a one-way call.
    ///
    /// # Errors
    ///
    /// The request cannot be sent.
    pub fn send<M: Method>(&self, request: &<M::Request as Body>::Value) -> Result<(), CallError> {
        let (mut bytes, mut handles) = (vec![0; Header::SIZE], Vec::new());
        M::Request::encode(request, &mut bytes, &mut handles)?;
        let mut state = self.shared.lock();
        state.one_ways += 1;
        let number = Number { value: state.one_ways, kind: MethodKind::OneWay };
        let header = Header { txid: 0, strictness: M::INFO.strictness, ordinal: M::INFO.ordinal };
        let body = &bytes[Header::SIZE..];
        let traced = sending(M::INFO, &self.shared.connection, number, body, !handles.is_empty(), false);
        // The lock keeps the numbers in the order of the messages.
        let sent = self.shared.link.send(header, &mut bytes, &handles);
        let sent = sent.map_err(|error| self.shared.reason(&mut state, error));
        if matches!(sent, Err(CallError::Full | CallError::TooLarge { .. })) {
            state.one_ways -= 1;
        }
        drop(state);
        traced.request_sent();
        sent
    }

    /// Waits for the next event. Returns `None` if the time is over.
    ///
    /// # Errors
    ///
    /// The connection ended.
    pub fn wait_event(&self, timeout: Option<Duration>) -> Result<Option<RawEvent>, CallError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let taken = self.shared.wait(deadline, |state| state.take_event().map(Ok));
        match taken {
            Some(event) => event.map(|event| Some(self.shared.event(event))),
            None => Ok(None),
        }
    }

    /// Awaits the next event. [`drive`](Self::drive) must run.
    ///
    /// # Errors
    ///
    /// The connection ended.
    pub async fn next_event(&self) -> Result<RawEvent, CallError> {
        let event = poll_fn(|cx| {
            let mut state = self.shared.lock();
            match (state.take_event(), &state.end) {
                (Some(event), _) => Poll::Ready(Ok(event)),
                (None, Some(error)) => Poll::Ready(Err(error.clone())),
                (None, None) => {
                    state.event_waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await?;
        Ok(self.shared.event(event))
    }

    /// Takes an event that the program does not know. Returns its number.
    ///
    /// # Errors
    ///
    /// The protocol does not allow unknown events, or the server insists that this one is known.
    /// The connection is closed then.
    pub fn unknown_event(&self, event: &RawEvent) -> Result<u64, CallError> {
        let is_flexible = event.header.strictness == Strictness::Flexible;
        if is_flexible && self.shared.openness != Openness::Closed {
            return Ok(event.ordinal());
        }
        let error = CallError::Protocol("an unknown event");
        self.shared.end(error.clone());
        Err(error)
    }

    /// Reads and writes the socket for calls that are awaited, until the connection ends. Returns
    /// the reason.
    pub async fn drive(&self, mut io: impl Readiness) -> CallError {
        poll_fn(|cx| self.shared.poll_drive(cx, &mut io)).await
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.shared.end(CallError::Closed);
    }
}

impl<P> Clone for Channel<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), protocol: PhantomData }
    }
}

impl<P> AsFd for Channel<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.link.socket.as_fd()
    }
}

impl<P: Protocol> core::fmt::Debug for Channel<P> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Channel").field("protocol", &P::NAME).field("socket", &self.shared.link.socket).finish()
    }
}

/// Event that is not decoded.
#[derive(Debug)]
pub struct RawEvent {
    header: Header,
    message: Message,
    number: u64,
    connection: Connection,
}

impl RawEvent {
    /// Returns the number of the event's kind.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.header.ordinal
    }

    /// Decodes the event as one of kind `M`.
    ///
    /// # Errors
    ///
    /// The bytes are no such event.
    pub fn decode<M: Method>(self) -> Result<<M::Request as Body>::Value, CallError> {
        let Message { bytes, handles } = self.message;
        let body = &bytes[Header::SIZE..];
        let number = Number { value: self.number, kind: MethodKind::Event };
        let traced = received(M::INFO, &self.connection, number, body, !handles.is_empty());
        let _invoking = traced.invoking();
        M::Request::decode(body, handles).map_err(body_error)
    }
}

impl Shared {
    /// Reads and writes the socket, until the connection ends for this reason.
    fn poll_drive(&self, cx: &mut Context<'_>, io: &mut impl Readiness) -> Poll<CallError> {
        loop {
            if let Err(error) = self.link.poll_flush(cx, io) {
                self.end(error.into());
            }
            let mut state = self.lock();
            let mut messages = 0;
            while messages < MESSAGES_PER_TURN && !state.has_enough_events() && self.read_one(&mut state) {
                messages += 1;
            }
            if let Some(error) = &state.end {
                return Poll::Ready(error.clone());
            }
            state.driver_waker = Some(cx.waker().clone());
            if messages == MESSAGES_PER_TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if state.has_enough_events() {
                return Poll::Pending;
            }
            drop(state);
            match io.poll_readable(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.end(error.into()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, (header, message, number): (Header, Message, u64)) -> RawEvent {
        RawEvent { header, message, number, connection: self.connection.clone() }
    }

    /// Ends the connection for this reason, unless it has ended.
    fn end(&self, reason: CallError) {
        let mut state = self.lock();
        self.end_locked(&mut state, reason);
    }

    fn end_locked(&self, state: &mut State, reason: CallError) {
        if state.end.is_some() {
            return;
        }
        state.end = Some(reason);
        for slot in state.calls.values_mut() {
            if let Slot::Waiting { waker: Some(waker), .. } = slot {
                waker.wake_by_ref();
            }
        }
        if let Some(waker) = state.event_waker.take() {
            waker.wake();
        }
        state.wake_driver();
        self.link.close();
        self.changed.notify_all();
    }

    /// Reads a message if one is there. Returns false if none is.
    fn read_one(&self, state: &mut State) -> bool {
        if state.end.is_some() {
            return false;
        }
        let taken = match state.inbox.receive(&self.link.socket) {
            Ok(Received::Message(message)) => self.take(state, message),
            Ok(Received::Nothing) => return false,
            Ok(Received::End) => Err(CallError::Closed),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = taken {
            self.end_locked(state, error);
        }
        self.changed.notify_all();
        true
    }

    fn take(&self, state: &mut State, message: Message) -> Result<(), CallError> {
        let header = Header::parse(&message.bytes).map_err(CallError::Decode)?;
        if header.txid == 0 {
            return self.take_event(state, header, message);
        }
        match state.calls.get_mut(&header.txid) {
            Some(Slot::Waiting { ordinal, .. } | Slot::Abandoned { ordinal }) if *ordinal != header.ordinal => {
                Err(CallError::Protocol("the response is that of another method"))
            }
            Some(slot @ Slot::Waiting { .. }) => {
                if let Slot::Waiting { waker: Some(waker), .. } = std::mem::replace(slot, Slot::Done(message)) {
                    waker.wake();
                }
                Ok(())
            }
            Some(Slot::Abandoned { .. }) => {
                state.calls.remove(&header.txid);
                Ok(())
            }
            Some(Slot::Done(_)) => Err(CallError::Protocol("a second response")),
            None => Err(CallError::Protocol("a response to no call")),
        }
    }

    fn take_event(&self, state: &mut State, header: Header, message: Message) -> Result<(), CallError> {
        if header.ordinal == EPITAPH {
            let body = &message.bytes[Header::SIZE..];
            let status = decode::<i32>(body, message.handles).map_err(CallError::Decode)?;
            return Err(CallError::Epitaph(status));
        }
        if header.ordinal >> 63 == 1 {
            // A control message of a newer peer.
            return Ok(());
        }
        state.event_cost += cost(message.bytes.len(), message.handles.len());
        if state.events.len() == MAX_WAITING_EVENTS || state.event_cost > MAX_WAITING_BYTES {
            return Err(CallError::Protocol("more events than the program takes"));
        }
        state.event_count += 1;
        state.events.push_back((header, message, state.event_count));
        if let Some(waker) = state.event_waker.take() {
            waker.wake();
        }
        Ok(())
    }

    /// Returns the reason why a message could not be sent: what a server that closed the connection
    /// said before, or `error`.
    fn reason(&self, state: &mut State, error: CallError) -> CallError {
        if matches!(error, CallError::Closed) {
            while state.events.len() < MAX_WAITING_EVENTS && self.read_one(state) {}
        }
        state.end.clone().unwrap_or(error)
    }

    /// Waits until `take` returns something, or the connection ends. Returns `None` if the time is
    /// over.
    fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut take: impl FnMut(&mut State) -> Option<Result<T, CallError>>,
    ) -> Option<Result<T, CallError>> {
        let mut state = self.lock();
        loop {
            if let Some(taken) = take(&mut state) {
                return Some(taken);
            }
            if let Some(error) = &state.end {
                return Some(Err(error.clone()));
            }
            // Only as much is read as this thread waits for: more events than the program takes
            // stay in the socket.
            let has_read = !state.has_reader && self.read_one(&mut state);
            let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                // A server that sends without a pause does not delay this.
                Some(Duration::ZERO) => {
                    return take(&mut state).or_else(|| state.end.clone().map(Err));
                }
                left => left,
            };
            if has_read {
                continue;
            }
            if state.has_reader {
                state = match left {
                    Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                    None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                };
                continue;
            }
            state.has_reader = true;
            drop(state);
            let ready = self.wait_for_socket(left);
            state = self.lock();
            state.has_reader = false;
            if let Err(error) = ready {
                self.end_locked(&mut state, error.into());
            }
            // Another thread may have to read on.
            self.changed.notify_all();
        }
    }

    fn wait_for_socket(&self, left: Option<Duration>) -> io::Result<()> {
        // A server that waits until this client reads takes no messages meanwhile.
        self.link.wait(|write| Interest { read: true, write }, left)
    }
}

impl State {
    /// Returns a number that no call has. Numbers with the highest bit are reserved.
    fn next_txid(&mut self) -> u32 {
        loop {
            self.last_txid = if self.last_txid >= u32::MAX >> 1 { 1 } else { self.last_txid + 1 };
            if !self.calls.contains_key(&self.last_txid) {
                return self.last_txid;
            }
        }
    }

    /// Returns true if more events can stay in the socket, because no call waits for a response
    /// after them.
    fn has_enough_events(&self) -> bool {
        let is_half_full = self.events.len() > MAX_WAITING_EVENTS / 2 || self.event_cost > MAX_WAITING_BYTES / 2;
        is_half_full && !self.calls.values().any(|slot| matches!(slot, Slot::Waiting { .. }))
    }

    fn wake_driver(&mut self) {
        if let Some(waker) = self.driver_waker.take() {
            waker.wake();
        }
    }

    fn take_event(&mut self) -> Option<(Header, Message, u64)> {
        let event = self.events.pop_front()?;
        self.event_cost -= cost(event.1.bytes.len(), event.1.handles.len());
        self.wake_driver();
        Some(event)
    }

    fn abandon(&mut self, txid: u32) {
        match self.calls.get_mut(&txid) {
            Some(slot @ Slot::Waiting { .. }) => {
                if let Slot::Waiting { ordinal, .. } = *slot {
                    *slot = Slot::Abandoned { ordinal };
                }
            }
            Some(Slot::Done(_)) => {
                self.calls.remove(&txid);
            }
            Some(Slot::Abandoned { .. }) | None => {}
        }
    }
}

fn body_error(error: BodyError) -> CallError {
    match error {
        BodyError::Decode(error) => CallError::Decode(error),
        BodyError::Framework(error) => error.into(),
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.link.close();
        // A driver that does not keep the channel ends.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = state.driver_waker.take() {
            waker.wake();
        }
    }
}
