//! [`Server`]: the server's end of a connection, for generated servers.

use core::fmt;
use core::marker::PhantomData;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use esatto_ipc::observed::{Connection, Traced};
use esatto_ipc::{Interest, Readiness};

use crate::body::{Body, BodyError, FrameworkError, framework_answer};
use crate::call_error::CallError;
use crate::handle::ServerEnd;
use crate::header::{EPITAPH, Header, Strictness};
use crate::identity::{HELLO, Number, received, sending};
use crate::link::Link;
use crate::protocol::{Method, MethodInfo, MethodKind, Openness, Protocol};
use crate::socket::{Inbox, Message, Received, Socket};
use crate::wire::decode;

/// Messages that one connection handles in a row, before others get their turn.
pub(crate) const MESSAGES_PER_TURN: usize = 64;

/// Methods of a protocol, as generated code connects them with a program's.
pub trait Dispatch {
    /// The protocol.
    type Protocol: Protocol;

    /// Handles a message.
    ///
    /// # Errors
    ///
    /// The message is malformed. The connection is closed.
    fn dispatch(&mut self, incoming: Incoming<'_>) -> Result<(), CallError>;
}

/// Server's end of a connection, with the program's methods.
pub struct Server<D: Dispatch> {
    dispatch: D,
    shared: Arc<Shared>,
    inbox: Inbox,
    one_ways: u64,
}

/// Part of a connection that responders and event senders share.
struct Shared {
    link: Link,
    /// It has no number until the client tells one.
    connection: Mutex<Connection>,
    /// Events that were sent.
    events: Mutex<u64>,
}

impl Shared {
    fn connection(&self) -> Connection {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the client why the connection ends, and ends it.
    fn close_with(&self, status: i32) {
        let header = Header { txid: 0, strictness: Strictness::Strict, ordinal: EPITAPH };
        let mut message = [0; Header::SIZE + 8];
        message[Header::SIZE..Header::SIZE + 4].copy_from_slice(&status.to_le_bytes());
        // The client may be gone.
        let _ = self.link.send(header, &mut message, &[]);
        self.link.close();
    }
}

/// Message that came.
pub struct Incoming<'s> {
    header: Header,
    message: Message,
    shared: &'s Arc<Shared>,
    openness: Openness,
    number: Number,
}

impl<D: Dispatch> Server<D> {
    /// Takes the server's end of a connection.
    ///
    /// # Errors
    ///
    /// It is no UNIX socket of packets or stream.
    pub fn new(end: ServerEnd<D::Protocol>, dispatch: D) -> io::Result<Self> {
        let link = Link::new(Socket::new(end.into())?);
        let shared = Shared { link, connection: Mutex::new(Connection::new(0)), events: Mutex::new(0) };
        Ok(Self { dispatch, shared: Arc::new(shared), inbox: Inbox::default(), one_ways: 0 })
    }

    /// Returns a sender of events.
    #[must_use]
    pub fn events(&self) -> EventSender<D::Protocol> {
        EventSender { shared: Arc::clone(&self.shared), protocol: PhantomData }
    }

    /// Returns the program's methods.
    pub fn methods(&mut self) -> &mut D {
        &mut self.dispatch
    }

    /// Handles messages on this thread until the connection ends.
    ///
    /// # Errors
    ///
    /// The reason, unless the client closed the connection.
    pub fn run(&mut self) -> Result<(), CallError> {
        loop {
            match self.pump()? {
                Progress::Ended => return Ok(()),
                Progress::More => {}
                Progress::Idle => {
                    self.shared.link.wait(interest, None)?;
                }
            }
        }
    }

    /// Handles messages on any runtime until the connection ends.
    ///
    /// # Errors
    ///
    /// The reason, unless the client closed the connection.
    pub async fn drive(&mut self, mut io: impl Readiness) -> Result<(), CallError> {
        poll_fn(|cx| self.poll(cx, &mut io)).await
    }

    /// Handles messages on tokio until the connection ends.
    ///
    /// # Errors
    ///
    /// The reason, unless the client closed the connection; or the runtime cannot wait for the
    /// socket.
    #[cfg(feature = "tokio")]
    pub async fn drive_on_tokio(&mut self) -> Result<(), CallError> {
        let io = esatto_ipc::tokio::TokioIo::duplicate(&*self)?;
        self.drive(io).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, io: &mut impl Readiness) -> Poll<Result<(), CallError>> {
        loop {
            let progress = self.turn()?;
            if progress == Progress::Ended {
                return Poll::Ready(Ok(()));
            }
            if !self.shared.link.poll_flush(cx, io)? {
                return Poll::Pending;
            }
            if progress == Progress::More {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match io.poll_readable(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Handles messages that are there, and sends what waits: for event loops. After
    /// [`Progress::More`], it wants to be called again without waiting for the socket. While
    /// responses or events wait for a client that does not read, it handles no messages.
    ///
    /// # Errors
    ///
    /// The reason, unless the client closed the connection.
    pub fn pump(&mut self) -> Result<Progress, CallError> {
        let progress = self.turn()?;
        if progress == Progress::Ended || self.shared.link.flush()? {
            return Ok(progress);
        }
        Ok(Progress::Idle)
    }

    /// Returns the events of the socket to wait for before the next [`pump`](Self::pump). If other
    /// threads answer calls or send events, it may change at any time, because one of their
    /// messages has to wait for room.
    #[must_use]
    pub fn interest(&self) -> Interest {
        interest(self.shared.link.has_waiting())
    }

    fn turn(&mut self) -> Result<Progress, CallError> {
        for _ in 0..MESSAGES_PER_TURN {
            if self.shared.link.is_closed() {
                return Ok(Progress::Ended);
            }
            if self.shared.link.has_waiting() {
                return Ok(Progress::More);
            }
            match self.inbox.receive(&self.shared.link.socket) {
                Ok(Received::Message(message)) => {
                    if let Err(error) = self.take(message) {
                        self.shared.link.close();
                        return Err(error);
                    }
                }
                Ok(Received::Nothing) => return Ok(Progress::Idle),
                Ok(Received::End) => {
                    self.shared.link.close();
                    return Ok(Progress::Ended);
                }
                Err(error) => {
                    self.shared.link.close();
                    return Err(error.into());
                }
            }
        }
        Ok(Progress::More)
    }

    fn take(&mut self, message: Message) -> Result<(), CallError> {
        let header = Header::parse(&message.bytes).map_err(CallError::Decode)?;
        if header.ordinal >> 63 == 1 {
            return self.control(header, message);
        }
        let number = if header.txid == 0 {
            self.one_ways += 1;
            Number { value: self.one_ways, kind: MethodKind::OneWay }
        } else {
            Number { value: u64::from(header.txid), kind: MethodKind::TwoWay }
        };
        let openness = D::Protocol::OPENNESS;
        self.dispatch.dispatch(Incoming { header, message, shared: &self.shared, openness, number })
    }

    fn control(&self, header: Header, message: Message) -> Result<(), CallError> {
        // Others are of newer peers.
        if header.ordinal == HELLO {
            let seed = decode::<u64>(&message.bytes[Header::SIZE..], message.handles).map_err(CallError::Decode)?;
            let mut connection = self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
            if connection.seed() == 0 {
                connection.accept_seed(seed);
            }
        }
        Ok(())
    }
}

/// State of a connection after some of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No message is there now.
    Idle,
    /// More messages are there, perhaps only in memory.
    More,
    /// The connection has ended.
    Ended,
}

impl<D: Dispatch> AsFd for Server<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.link.socket.as_fd()
    }
}

impl<D: Dispatch> fmt::Debug for Server<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("protocol", &D::Protocol::NAME).finish_non_exhaustive()
    }
}

impl<D: Dispatch> Drop for Server<D> {
    fn drop(&mut self) {
        self.shared.link.close();
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Incoming").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Incoming<'_> {
    /// Returns the number of the method.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.header.ordinal
    }

    /// Calls `method` with the request of a one-way method.
    ///
    /// # Errors
    ///
    /// The request is malformed.
    pub fn one_way<M: Method>(self, method: impl FnOnce(<M::Request as Body>::Value)) -> Result<(), CallError> {
        if self.header.txid != 0 {
            return Err(CallError::Protocol("a one-way call waits for a response"));
        }
        let traced = self.traced(M::INFO);
        let request = M::Request::decode(&self.message.bytes[Header::SIZE..], self.message.handles);
        let request = request.map_err(malformed)?;
        let _invoking = traced.invoking();
        method(request);
        Ok(())
    }

    /// Calls `method` with the request of a two-way method, and with its responder.
    ///
    /// # Errors
    ///
    /// The request is malformed.
    pub fn two_way<M: Method>(
        self,
        method: impl FnOnce(<M::Request as Body>::Value, Responder<M>),
    ) -> Result<(), CallError> {
        if self.header.txid == 0 {
            return Err(CallError::Protocol("a two-way call waits for no response"));
        }
        let traced = self.traced(M::INFO);
        let request = M::Request::decode(&self.message.bytes[Header::SIZE..], self.message.handles);
        let request = request.map_err(malformed)?;
        let responder = Responder {
            shared: Some(Arc::clone(self.shared)),
            txid: self.header.txid,
            traced: traced.clone(),
            method: PhantomData,
        };
        let _invoking = traced.invoking();
        method(request, responder);
        Ok(())
    }

    fn traced(&self, info: &'static MethodInfo) -> Traced {
        let body = &self.message.bytes[Header::SIZE..];
        received(info, &self.shared.connection(), self.number, body, !self.message.handles.is_empty())
    }

    /// Answers a call of a method that the program does not know, and calls `unknown` if the
    /// protocol allows it.
    ///
    /// # Errors
    ///
    /// The protocol does not allow it, or the client insists that the method is known.
    pub fn unknown(self, unknown: impl FnOnce(u64)) -> Result<(), CallError> {
        let is_flexible = self.header.strictness == Strictness::Flexible;
        let is_allowed = match self.openness {
            Openness::Closed => false,
            Openness::Ajar => self.header.txid == 0,
            Openness::Open => true,
        };
        if !is_flexible || !is_allowed {
            return Err(CallError::Protocol("a call of an unknown method"));
        }
        if self.header.txid != 0 {
            let mut message = vec![0; Header::SIZE];
            message.extend_from_slice(&framework_answer(FrameworkError::UNKNOWN_METHOD));
            self.shared.link.send(self.header, &mut message, &[])?;
        }
        unknown(self.header.ordinal);
        Ok(())
    }
}

/// Answers one call, on any thread. If it is dropped without an answer, the connection ends,
/// because the client would wait for ever.
#[must_use = "the client waits for a response"]
pub struct Responder<M: Method> {
    shared: Option<Arc<Shared>>,
    txid: u32,
    traced: Traced,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Responder<M> {
    /// Sends the response.
    ///
    /// # Errors
    ///
    /// It cannot be sent. The connection ends then.
    pub fn send(mut self, response: &<M::Response as Body>::Value) -> Result<(), CallError> {
        let (mut bytes, mut handles) = (vec![0; Header::SIZE], Vec::new());
        let Some(shared) = &self.shared else { return Ok(()) };
        M::Response::encode(response, &mut bytes, &mut handles)?;
        let header = Header { txid: self.txid, strictness: M::INFO.strictness, ordinal: M::INFO.ordinal };
        // Before the client can see it, perhaps on another CPU.
        let body = &bytes[Header::SIZE..];
        self.traced.reply_or_error_sent(body, || M::Response::error(body));
        shared.link.send(header, &mut bytes, &handles)?;
        self.shared = None;
        Ok(())
    }

    /// Ends the connection with an epitaph.
    pub fn close_with(mut self, status: i32) {
        if let Some(shared) = self.shared.take() {
            shared.close_with(status);
        }
    }
}

impl<M: Method> Drop for Responder<M> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.link.close();
        }
    }
}

impl<M: Method> fmt::Debug for Responder<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = M::INFO.traced.full_name;
        formatter.debug_struct("Responder").field("method", &name).field("txid", &self.txid).finish_non_exhaustive()
    }
}

/// Sends events to the client, from any thread. Clones use the same connection.
pub struct EventSender<P> {
    shared: Arc<Shared>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> EventSender<P> {
    /// Sends an event.
    ///
    /// # Errors
    ///
    /// It cannot be sent.
    pub fn send<M: Method>(&self, event: &<M::Request as Body>::Value) -> Result<(), CallError> {
        let (mut bytes, mut handles) = (vec![0; Header::SIZE], Vec::new());
        M::Request::encode(event, &mut bytes, &mut handles)?;
        let connection = self.shared.connection();
        // The lock keeps the numbers in the order of the messages.
        let mut count = self.shared.events.lock().unwrap_or_else(PoisonError::into_inner);
        let number = Number { value: *count + 1, kind: MethodKind::Event };
        let body = &bytes[Header::SIZE..];
        let traced = sending(M::INFO, &connection, number, body, !handles.is_empty(), false);
        let header = Header { txid: 0, strictness: M::INFO.strictness, ordinal: M::INFO.ordinal };
        let sent = self.shared.link.send(header, &mut bytes, &handles);
        *count += u64::from(sent.is_ok());
        drop(count);
        traced.request_sent();
        sent
    }

    /// Tells the client why the connection ends, and ends it.
    pub fn close_with(&self, status: i32) {
        self.shared.close_with(status);
    }
}

impl<P> Clone for EventSender<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), protocol: PhantomData }
    }
}

impl<P: Protocol> fmt::Debug for EventSender<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventSender").field("protocol", &P::NAME).finish_non_exhaustive()
    }
}

/// While messages wait for room, no more calls are taken.
fn interest(write: bool) -> Interest {
    Interest { read: !write, write }
}

fn malformed(error: BodyError) -> CallError {
    match error {
        BodyError::Decode(error) => CallError::Decode(error),
        BodyError::Framework(error) => error.into(),
    }
}
