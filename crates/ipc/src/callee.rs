//! [`Callee`]: the serving side of the RPC library, without I/O and without a clock
//! (`docs/spec/wire-protocol.md` §4, §23).
//!
//! One value stands for one accepted connection. It answers binds and invalid frames, and keeps the
//! state of each call that has not ended: its deadline, and the room for its replies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::task::Waker;
use std::time::{Duration, Instant};

use esatto_protozero::service::{Kind, Method, Service};

use crate::connection::WriteQueue;
use crate::error::Error;
use crate::frame::rpc::{Features, InvokeMethod, RpcBody, RpcFrame, WireStatus, encode};
use crate::frame::{PeerIdentity, encode as plain};
use crate::frame_size::MAX_FRAME;
use crate::observed::{Begin, Connection, Traced};
use crate::passed_fds::room_of;
use crate::peer::Peer;
use crate::status::{Code, Status};

/// Largest room for the replies of a stream. More credit than that is not counted.
const MAX_WINDOW: i64 = 1 << 32;

/// Serving end of one connection.
#[derive(Debug)]
pub struct Callee {
    /// Extensions that both sides know. Empty until the first bind.
    features: Features,
    connection: Connection,
    was_bound: bool,
    max_calls: usize,
    max_request_bytes: usize,
    max_fds: usize,
    /// Sums over the open calls.
    request_bytes: usize,
    fds: usize,
    last_serial: u64,
    open: BTreeMap<u64, Open>,
    deadlines: BTreeSet<(Instant, CallKey)>,
    ended: VecDeque<CallKey>,
    wakers: Vec<Waker>,
    /// The last call, if hooks see it. Not a part of [`Invoked`], which has no drop this way.
    invoked: Traced,
    refused: u64,
}

/// Name of an open call. A client may use a number again, so the number alone is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// Number that the client chose.
    pub request_id: u64,
    /// Number that the [`Callee`] chose.
    pub serial: u64,
}

/// Meaning of a frame for the layer above.
#[derive(Debug)]
pub enum CalleeEvent<'a> {
    /// Nothing to do, except for [`Callee::next_ended`].
    None,
    /// A call. The layer above ends it with [`Callee::reply`], [`Callee::fail`] or
    /// [`Callee::close`].
    Invoke(Invoked<'a>),
    /// A relay told the identity of the process for which it forwards.
    PeerIdentity(PeerIdentity<'a>),
}

/// Call of an existing method.
#[derive(Clone, Debug)]
pub struct Invoked<'a> {
    /// Name of the call.
    pub key: CallKey,
    /// Position of its service.
    pub service: usize,
    /// Id of the method, from 1.
    pub method_id: u32,
    /// The method.
    pub method: &'static Method,
    /// The encoded request message.
    pub args: &'a [u8],
    /// Time at which the client gives up.
    pub deadline: Option<Instant>,
}

/// Reason why a reply was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// Nobody waits for the reply: the call was cancelled, its deadline passed, or the connection
    /// has ended.
    Closed,
    /// The client must take earlier replies first.
    Full,
    /// The reply does not fit in a frame.
    TooLarge {
        /// Size of the frame in bytes.
        len: usize,
    },
}

#[derive(Debug)]
struct Open {
    key: CallKey,
    method: &'static Method,
    deadline: Option<Instant>,
    /// Size of its request.
    bytes: usize,
    has_fd: bool,
    /// Bytes of replies that may be sent; `None` without a limit. The last reply may exceed it.
    room: Option<i64>,
    /// The client wants no reply.
    is_silent: bool,
    /// Woken at credit, and at the end.
    watchers: Vec<Waker>,
    traced: Traced,
    replies: u64,
    /// Descriptor for the next reply.
    attached: Option<OwnedFd>,
}

impl Callee {
    /// Makes the callee of a new connection, which may have `max_calls` open calls.
    #[must_use]
    pub fn new(max_calls: usize) -> Self {
        Self {
            features: Features::default(),
            connection: Connection::default(),
            was_bound: false,
            max_calls,
            max_request_bytes: usize::MAX,
            max_fds: usize::MAX,
            request_bytes: 0,
            fds: 0,
            last_serial: 0,
            open: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ended: VecDeque::new(),
            wakers: Vec::new(),
            invoked: Default::default(),
            refused: 0,
        }
    }

    /// Sets the bounds on the requests of the open calls: their bytes together, and the number of
    /// those with a descriptor. There are none by default.
    #[must_use]
    pub fn with_request_bounds(mut self, bytes: usize, fds: usize) -> Self {
        (self.max_request_bytes, self.max_fds) = (bytes, fds);
        self
    }

    /// Tells hooks the process at the other end.
    pub(crate) fn set_peer(&mut self, peer: &Peer) {
        self.connection.set_peer(peer);
    }

    /// Handles a frame. `service` returns the services on offer, by position. Call
    /// [`next_ended`](Self::next_ended) then, until it returns `None`.
    pub fn handle<'a>(
        &mut self,
        frame: &RpcFrame<'a>,
        service: &dyn Fn(usize) -> Option<&'static Service>,
        now: Instant,
        out: &mut WriteQueue,
    ) -> CalleeEvent<'a> {
        let id = frame.request_id;
        match frame.body {
            RpcBody::InvokeMethod(call) => return self.invoke(id, &call, frame.has_fd, service, now, out),
            RpcBody::BindService { service_name } => self.bind(frame, service_name, service, out),
            RpcBody::Cancel => {
                if let Some(open) = self.remove(id) {
                    self.ended.push_back(open.key);
                    self.wakers.extend(open.watchers);
                }
            }
            RpcBody::Credit { bytes } => {
                let Some(open) = self.open.get_mut(&id) else { return CalleeEvent::None };
                if let Some(room) = &mut open.room {
                    *room = (*room + i64::from(bytes)).min(MAX_WINDOW);
                    self.wakers.append(&mut open.watchers);
                }
            }
            RpcBody::SetPeerIdentity(claim) => return CalleeEvent::PeerIdentity(claim),
            _ => {
                self.refused += 1;
                plain::request_error(out.buffer(), id);
            }
        }
        CalleeEvent::None
    }

    /// Returns the hooks' part of the call that [`handle`](Self::handle) has just returned.
    pub(crate) fn take_invoked(&mut self) -> Traced {
        std::mem::take(&mut self.invoked)
    }

    /// Answers a call, or, if `has_more`, sends one of the replies of a stream.
    ///
    /// # Errors
    ///
    /// If nothing was sent.
    pub fn reply(
        &mut self,
        key: CallKey,
        body: &[u8],
        fd: &mut Option<OwnedFd>,
        has_more: bool,
        out: &mut WriteQueue,
    ) -> Result<(), SendError> {
        let open = self.open.get_mut(&key.request_id).filter(|open| open.key == key).ok_or(SendError::Closed)?;
        if has_more && open.room.is_some_and(|room| room <= 0) {
            return Err(SendError::Full);
        }
        if !open.is_silent {
            let before = out.queued();
            *fd = fd.take().or_else(|| open.attached.take());
            let is_marked = fd.is_some() && self.features.has(Features::DESCRIPTORS);
            let written = match fd.take() {
                Some(fd) => {
                    out.with_fd(fd, |buffer| encode::reply_ok(buffer, key.request_id, body, has_more, is_marked))
                }
                None => encode::reply_ok(out.buffer(), key.request_id, body, has_more, false),
            };
            if let Err(error) = written {
                let len = if let Error::MessageTooLarge { len } = error { len } else { MAX_FRAME };
                return Err(SendError::TooLarge { len });
            }
            if let Some(room) = &mut open.room {
                *room -= i64::try_from(room_of(out.queued() - before, is_marked)).unwrap_or(MAX_WINDOW);
            }
        }
        open.replies += 1;
        open.traced.reply_sent(open.replies, body, has_more, None);
        if !has_more {
            self.remove(key.request_id);
        }
        Ok(())
    }

    /// Sends a descriptor with the next reply that has none. It is closed if the call ends before.
    pub fn attach(&mut self, key: CallKey, fd: OwnedFd) {
        if let Some(open) = self.open.get_mut(&key.request_id).filter(|open| open.key == key) {
            open.attached = Some(fd);
        }
    }

    /// Ends a stream without a further reply.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`] if it has ended already.
    pub fn finish(&mut self, key: CallKey, out: &mut WriteQueue) -> Result<(), SendError> {
        let open = self.take(key).ok_or(SendError::Closed)?;
        if !open.is_silent {
            encode::end_of_stream(out.buffer(), key.request_id);
            open.traced.reply_sent(open.replies + 1, &[], false, None);
        }
        Ok(())
    }

    /// Answers that a call failed.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`] if it has ended already.
    pub fn fail(&mut self, key: CallKey, status: &Status, out: &mut WriteQueue) -> Result<(), SendError> {
        let open = self.take(key).ok_or(SendError::Closed)?;
        if !open.is_silent {
            self.write_failure(key.request_id, status, out);
            open.traced.reply_sent(open.replies + 1, &[], false, Some(status));
        }
        Ok(())
    }

    /// Answers that the arguments of a call cannot be decoded, even if the client wants no reply.
    pub fn fail_malformed(&mut self, key: CallKey, out: &mut WriteQueue) {
        if let Some(open) = self.take(key) {
            let text = format!("the request of {} cannot be decoded", open.method.full_name);
            self.refuse(key.request_id, &Status::new(Code::InvalidArgument, text), out);
        }
    }

    /// Ends a call without an answer. Returns false if it has ended already.
    pub fn close(&mut self, key: CallKey) -> bool {
        self.take(key).is_some()
    }

    /// Ends the calls whose deadline has passed: see [`next_ended`](Self::next_ended).
    pub fn expire(&mut self, now: Instant, out: &mut WriteQueue) {
        while let Some(&(deadline, key)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_first();
            let Some(open) = self.take(key) else { continue };
            if !open.is_silent {
                self.write_failure(key.request_id, &Code::DeadlineExceeded.into(), out);
            }
            self.ended.push_back(key);
            self.wakers.extend(open.watchers);
        }
    }

    /// Ends all calls because the connection has ended.
    pub fn disconnect(&mut self) {
        self.deadlines.clear();
        (self.request_bytes, self.fds) = (0, 0);
        for open in std::mem::take(&mut self.open).into_values() {
            self.ended.push_back(open.key);
            self.wakers.extend(open.watchers);
        }
    }

    /// Returns a call that ended although the service had not answered.
    pub fn next_ended(&mut self) -> Option<CallKey> {
        self.ended.pop_front()
    }

    /// Takes the wakers of those for whom something has changed. Wake them when no lock is held.
    pub fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }

    /// Returns true if the call has not ended.
    #[must_use]
    pub fn is_open(&self, key: CallKey) -> bool {
        self.open.get(&key.request_id).is_some_and(|open| open.key == key)
    }

    /// Returns true if a further reply of a stream may be sent.
    #[must_use]
    pub fn has_room(&self, key: CallKey) -> bool {
        let open = self.open.get(&key.request_id).filter(|open| open.key == key);
        open.is_some_and(|open| open.room.is_none_or(|room| room > 0))
    }

    /// Wakes a task when the client gives credit, and when the call ends.
    pub fn watch(&mut self, key: CallKey, waker: &Waker) {
        if let Some(open) = self.open.get_mut(&key.request_id).filter(|open| open.key == key) {
            if !open.watchers.iter().any(|known| known.will_wake(waker)) {
                open.watchers.push(waker.clone());
            }
        }
    }

    /// Returns the time at which [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Returns true if the client has asked for a service.
    #[must_use]
    pub fn was_bound(&self) -> bool {
        self.was_bound
    }

    /// Returns the extensions that both sides know.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// Returns the seed of the connection for flow ids; 0 if there is none.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.connection.seed()
    }

    /// Returns the number of calls that have not ended.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of requests that were answered with an error because they were not valid.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn bind(
        &mut self,
        frame: &RpcFrame<'_>,
        name: &[u8],
        service: &dyn Fn(usize) -> Option<&'static Service>,
        out: &mut WriteQueue,
    ) {
        let is_first = !std::mem::replace(&mut self.was_bound, true);
        if is_first {
            self.features = frame.features & Features::ALL;
            self.connection.accept_seed(frame.trace_seed);
        }
        let (features, seed) = if is_first { (self.features, self.connection.seed()) } else { Default::default() };
        let id = frame.request_id;
        let found = (0..).map_while(service).zip(1..).find(|(service, _)| service.name.as_bytes() == name);
        match found {
            Some((service, service_id)) => {
                let methods = (1..).zip(service.methods.iter().map(|method| method.name));
                encode::bind_service_reply(out.buffer(), id, service_id, methods, features, seed)
                    .expect("the method list of a service fits in a frame");
            }
            None => {
                self.refused += 1;
                self.connection.rejected(id, None, 0);
                encode::bind_service_failed(out.buffer(), id, features, seed);
            }
        }
    }

    fn invoke<'a>(
        &mut self,
        request_id: u64,
        call: &InvokeMethod<'a>,
        has_fd: bool,
        service: &dyn Fn(usize) -> Option<&'static Service>,
        now: Instant,
        out: &mut WriteQueue,
    ) -> CalleeEvent<'a> {
        let index = (call.service_id as usize).checked_sub(1);
        let named = index.and_then(|index| Some((index, service(index)?)));
        let found = named.and_then(|(index, service)| Some((index, service.method(call.method_id)?)));
        let Some((service, method)) = found else {
            self.connection.rejected(request_id, named.map(|(_, service)| service), call.method_id);
            self.refuse(request_id, &Status::new(Code::Unimplemented, "there is no such method"), out);
            return CalleeEvent::None;
        };
        let is_silent = call.drop_reply || method.kind == Kind::OneWay;
        let refusal = if self.open.contains_key(&request_id) {
            Some(Status::new(Code::InvalidArgument, "the request id is in use"))
        } else if self.open.len() >= self.max_calls {
            let text = format!("{}: more than {} calls are open", method.full_name, self.max_calls);
            Some(Status::new(Code::ResourceExhausted, text))
        } else if !self.open.is_empty() && self.request_bytes.saturating_add(call.args.len()) > self.max_request_bytes {
            let text = format!("{}: the open calls have more than {} bytes", method.full_name, self.max_request_bytes);
            Some(Status::new(Code::ResourceExhausted, text))
        } else if has_fd && self.fds >= self.max_fds {
            let text = format!("{}: more than {} open calls have a descriptor", method.full_name, self.max_fds);
            Some(Status::new(Code::ResourceExhausted, text))
        } else {
            None
        };
        if let Some(status) = refusal {
            self.refused += 1;
            if !call.drop_reply {
                self.write_failure(request_id, &status, out);
            }
            return CalleeEvent::None;
        }
        self.last_serial += 1;
        let key = CallKey { request_id, serial: self.last_serial };
        let timeout = (call.timeout_us != 0).then(|| Duration::from_micros(call.timeout_us));
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        let room = call.window.filter(|_| method.kind == Kind::ServerStream).map(i64::from);
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, key));
        }
        let (method_id, args) = (call.method_id, call.args);
        let connection = &self.connection;
        let traced = Traced::invocation(method, || Begin {
            connection,
            request_id,
            message: args,
            has_fd,
            is_blocking: false,
            is_from_acceptor: false,
            own_flow_id: None,
        });
        self.invoked.copy(&traced);
        let open = Open {
            key,
            method,
            deadline,
            bytes: args.len(),
            has_fd,
            room,
            is_silent,
            watchers: Vec::new(),
            traced,
            replies: 0,
            attached: None,
        };
        self.request_bytes += open.bytes;
        self.fds += usize::from(has_fd);
        self.open.insert(request_id, open);
        CalleeEvent::Invoke(Invoked { key, service, method_id, method, args, deadline })
    }

    /// Answers a call that cannot be made. Peers that know no status get the plain form.
    fn refuse(&mut self, request_id: u64, status: &Status, out: &mut WriteQueue) {
        self.refused += 1;
        if self.features.has(Features::STATUS) {
            self.write_failure(request_id, status, out);
        } else {
            plain::reply_not_invoked(out.buffer(), request_id);
        }
    }

    fn write_failure(&self, request_id: u64, status: &Status, out: &mut WriteQueue) {
        if self.features.has(Features::STATUS) {
            let (text, details) = (status.text().as_bytes(), status.details());
            let status = WireStatus { code: status.code().number(), text, details };
            encode::reply_status(out.buffer(), request_id, &status);
        } else {
            plain::reply_rejected(out.buffer(), request_id);
        }
    }

    fn take(&mut self, key: CallKey) -> Option<Open> {
        if self.is_open(key) { self.remove(key.request_id) } else { None }
    }

    fn remove(&mut self, request_id: u64) -> Option<Open> {
        let open = self.open.remove(&request_id)?;
        self.request_bytes -= open.bytes;
        self.fds -= usize::from(open.has_fd);
        if let Some(deadline) = open.deadline {
            self.deadlines.remove(&(deadline, open.key));
        }
        Some(open)
    }
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("nobody waits for the reply"),
            Self::Full => f.write_str("the client must take earlier replies first"),
            Self::TooLarge { len } => write!(f, "the reply needs a frame of {len} bytes (limit {MAX_FRAME})"),
        }
    }
}

impl std::error::Error for SendError {}

impl From<SendError> for Status {
    fn from(error: SendError) -> Self {
        let code = match error {
            SendError::Closed => Code::Cancelled,
            SendError::Full | SendError::TooLarge { .. } => Code::ResourceExhausted,
        };
        Self::new(code, error.to_string())
    }
}
