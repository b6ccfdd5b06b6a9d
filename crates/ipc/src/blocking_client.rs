//! [`BlockingClient`]: a client for programs that have nothing else to do while they wait.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use esatto_protozero::Owned;
use esatto_protozero::service::{Rpc, method_of};

use crate::address::Address;
use crate::client::{Client, ClientEvent, RequestId};
use crate::connection::{Connection, Limits};
use crate::error::Error;
use crate::sys::Stream;

/// Client of one service with its own socket. Every wait has a timeout; `None` waits forever.
///
/// A program may also poll it: it implements `AsFd`, and [`try_reply`](Self::try_reply) never
/// waits.
#[derive(Debug)]
pub struct BlockingClient {
    connection: Connection,
    client: Client,
    /// Replies that came while the client waited for another one. A stream that is not read fills
    /// the queue, so the connection ends at [`MAX_STASHED`] bytes.
    stash: VecDeque<Reply>,
    stashed_bytes: usize,
}

/// Largest size of the replies that are kept for later, in bytes.
const MAX_STASHED: usize = 256 << 20;

/// Reply to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Id of the call.
    pub request_id: RequestId,
    /// Name of the method.
    pub method: &'static str,
    /// False if the call was rejected.
    pub success: bool,
    /// True if further replies will come.
    pub has_more: bool,
    /// The encoded reply message; empty if rejected.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns true if this is a reply to a call of the method.
    pub fn is_of<M: Rpc>(&self) -> bool {
        self.method == name_of::<M>()
    }

    /// Decodes the reply message.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] if the call was rejected, [`Error::BadReply`] if the body is not such a
    /// message.
    pub fn decode<M: Owned>(&self) -> Result<M, Error> {
        if !self.success {
            return Err(Error::Rejected(self.method));
        }
        M::decode(&self.body).map_err(|_| Error::BadReply(self.method))
    }
}

impl BlockingClient {
    /// Connects to a service and binds it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchService`] if the socket has no such service, [`Error::Timeout`], or the
    /// reason why the connection failed.
    pub fn connect(address: &Address, service_name: &str, timeout: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + timeout;
        let stream = Stream::connect(address, timeout)?;
        Self::bind(stream, service_name, deadline.saturating_duration_since(Instant::now()))
    }

    /// Binds a service over a connected stream.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn bind(stream: Stream, service_name: &str, timeout: Duration) -> Result<Self, Error> {
        let mut this = Self {
            connection: Connection::new(stream, Limits::CLIENT),
            client: Client::new(),
            stash: VecDeque::new(),
            stashed_bytes: 0,
        };
        let deadline = Instant::now() + timeout;
        this.client.bind(service_name, this.connection.out().buffer())?;
        this.connection.flush_writes()?;
        loop {
            while let Some((frame, _)) = this.connection.next_frame()? {
                match this.client.handle(&frame) {
                    Some(ClientEvent::Bound) => return Ok(this),
                    Some(ClientEvent::BindFailed) => return Err(Error::NoSuchService(service_name.to_owned())),
                    _ => {}
                }
            }
            this.wait(Some(deadline))?;
        }
    }

    /// Calls a method and waits for its first reply.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchMethod`] if the service lacks it, [`Error::Timeout`] (a later reply is
    /// ignored then), [`Error::Disconnected`].
    pub fn call(&mut self, method: &'static str, args: &[u8], timeout: Option<Duration>) -> Result<Reply, Error> {
        let request = self.send(method, args, None)?;
        let result = self.wait_reply(request, timeout);
        if matches!(result, Err(Error::Timeout)) {
            self.client.forget(request);
        }
        result
    }

    /// Calls a method of generated bindings, and waits for its reply.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call) and [`Reply::decode`].
    pub fn call_message<M: Rpc>(&mut self, request: &M::Request, timeout: Option<Duration>) -> Result<M::Reply, Error> {
        self.call(name_of::<M>(), &request.encode(), timeout)?.decode()
    }

    /// As [`send`](Self::send), with a method of generated bindings.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_message<M: Rpc>(&mut self, request: &M::Request, fd: Option<OwnedFd>) -> Result<RequestId, Error> {
        self.send(name_of::<M>(), &request.encode(), fd)
    }

    /// Calls a method, with an optional descriptor. [`wait_reply`](Self::wait_reply) returns the
    /// replies.
    ///
    /// Does not wait. Bytes that the socket does not take now are written during a later wait.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchMethod`], [`Error::MessageTooLarge`], or a failure of the socket.
    pub fn send(&mut self, method: &'static str, args: &[u8], fd: Option<OwnedFd>) -> Result<RequestId, Error> {
        self.invoke(method, args, fd, false)
    }

    /// Calls a method that sends no reply.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_one_way(&mut self, method: &'static str, args: &[u8]) -> Result<(), Error> {
        self.invoke(method, args, None, true).map(drop)
    }

    /// Waits for the next reply to one call. Replies to other calls are kept.
    ///
    /// A request error counts as a rejection.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Disconnected`], or a failure of the socket.
    pub fn wait_reply(&mut self, request: RequestId, timeout: Option<Duration>) -> Result<Reply, Error> {
        let deadline = timeout.map(|t| Instant::now() + t);
        loop {
            if let Some(at) = self.stash.iter().position(|r| r.request_id == request) {
                return Ok(self.unstash(at).expect("position is valid"));
            }
            self.receive_or_wait(deadline)?;
        }
    }

    /// Waits for the next reply to any call.
    ///
    /// # Errors
    ///
    /// As [`wait_reply`](Self::wait_reply).
    pub fn next_reply(&mut self, timeout: Option<Duration>) -> Result<Reply, Error> {
        let deadline = timeout.map(|t| Instant::now() + t);
        loop {
            if let Some(reply) = self.unstash(0) {
                return Ok(reply);
            }
            self.receive_or_wait(deadline)?;
        }
    }

    /// Returns a reply to any call if one has arrived. Reads and writes as much as is possible
    /// without waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] after the last reply, or a failure of the socket.
    pub fn try_reply(&mut self) -> Result<Option<Reply>, Error> {
        if self.stash.is_empty() && !self.receive()? {
            self.connection.flush_writes()?;
            self.connection.on_readable()?;
            if !self.receive()? && self.connection.is_closed() {
                return Err(Error::Disconnected);
            }
        }
        Ok(self.unstash(0))
    }

    /// Calls a streaming method of generated bindings, and passes each reply's body to `visit`
    /// until the stream ends. Returns false if the service rejected the call. Each reply may take
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), and errors of `visit`.
    pub fn call_stream<M: Rpc, E: From<Error>>(
        &mut self,
        request: &M::Request,
        timeout: Option<Duration>,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let request = self.send_message::<M>(request, None)?;
        loop {
            let reply = self.wait_reply(request, timeout)?;
            if !reply.success {
                return Ok(false);
            }
            visit(&reply.body)?;
            if !reply.has_more {
                return Ok(true);
            }
        }
    }

    /// Returns true if the service has this method.
    pub fn has_method(&self, method: &str) -> bool {
        self.client.has_method(method)
    }

    /// Returns true if the service has this method of generated bindings.
    pub fn has<M: Rpc>(&self) -> bool {
        self.has_method(name_of::<M>())
    }

    /// Takes the newest descriptor that arrived.
    pub fn take_fd(&mut self) -> Option<OwnedFd> {
        self.connection.take_fd()
    }

    /// Returns the connection, for its counters, or to wait for it together with something else.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn invoke(
        &mut self,
        method: &'static str,
        args: &[u8],
        fd: Option<OwnedFd>,
        drop_reply: bool,
    ) -> Result<RequestId, Error> {
        if !self.client.has_method(method) {
            return Err(Error::NoSuchMethod(method.to_owned()));
        }
        let (out, client) = (self.connection.out(), &mut self.client);
        let request = match fd {
            Some(fd) => out.with_fd(fd, |buffer| client.invoke(method, args, drop_reply, buffer)),
            None => client.invoke(method, args, drop_reply, out.buffer()),
        }?;
        self.connection.flush_writes()?;
        request.ok_or_else(|| Error::NoSuchMethod(method.to_owned()))
    }

    /// Moves complete frames into the stash, or waits for more bytes.
    fn receive_or_wait(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if self.receive()? { Ok(()) } else { self.wait(deadline) }
    }

    /// Moves complete frames into the stash. Returns true if one was a reply.
    fn receive(&mut self) -> Result<bool, Error> {
        let before = self.stash.len();
        while let Some((frame, _)) = self.connection.next_frame()? {
            let reply = match self.client.handle(&frame) {
                Some(ClientEvent::Reply { request_id, method, success, has_more, body }) => {
                    Reply { request_id, method, success, has_more, body: body.to_vec() }
                }
                Some(ClientEvent::RequestError { request_id, method, .. }) => {
                    Reply { request_id, method, success: false, has_more: false, body: Vec::new() }
                }
                _ => continue,
            };
            self.stashed_bytes += reply.body.len();
            self.stash.push_back(reply);
            if self.stashed_bytes > MAX_STASHED {
                return Err(Error::TooManyReplies { bytes: self.stashed_bytes });
            }
        }
        Ok(self.stash.len() > before)
    }

    fn unstash(&mut self, at: usize) -> Option<Reply> {
        let reply = self.stash.remove(at)?;
        self.stashed_bytes -= reply.body.len();
        Some(reply)
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if self.connection.is_closed() {
            return Err(Error::Disconnected);
        }
        if self.connection.wait(deadline)? { Ok(()) } else { Err(Error::Timeout) }
    }
}

fn name_of<M: Rpc>() -> &'static str {
    const { method_of::<M>().name }
}

impl AsFd for BlockingClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
