//! [`Caller`]: the calling side of the RPC library, without I/O and without a clock
//! (`docs/spec/wire-protocol.md` §4, §23).
//!
//! One value stands for one connection, with any number of services. It numbers requests, binds
//! services before their first call, and matches replies with calls. Bytes go to a
//! [`WriteQueue`]; frames come from a [`FrameDecoder`](crate::FrameDecoder).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::time::Instant;

use esatto_protozero::service::{Kind, Method, Service};

use crate::call_error::CallError;
use crate::connection::WriteQueue;
use crate::error::Error;
use crate::frame::Methods;
use crate::frame::rpc::{Features, InvokeMethod, RpcBody, RpcFrame, WireStatus, encode};
use crate::frame_size::MAX_FRAME;
use crate::observed::{Begin, Connection, Traced};
use crate::passed_fds::{ROOM_OF_FD, room_of};
use crate::peer::Peer;
use crate::status::{Code, Status};

/// Bytes of a stream's replies that are kept for a program that does not read them, if the peer
/// knows no windows. The call fails beyond it.
const MAX_STREAM_BACKLOG: usize = 64 << 20;

/// Bytes that a frame adds to the arguments of a call, at most.
const MAX_CALL_OVERHEAD: usize = 80;

/// Calling end of one connection.
#[derive(Debug, Default)]
pub struct Caller {
    last_request: u64,
    /// Extensions that both sides know. Empty until the first bind is answered.
    features: Features,
    connection: Connection,
    was_bound: bool,
    bindings: Vec<Binding>,
    pending: BTreeMap<u64, Pending>,
    deadlines: BTreeSet<(Instant, u64)>,
    failed: VecDeque<(u64, CallError)>,
    unsent_bytes: usize,
    unsent_fds: usize,
    unexpected: u64,
}

/// Call to start.
#[derive(Debug)]
pub struct NewCall<'a> {
    /// Service of the method.
    pub service: &'static Service,
    /// Id of the method within the service's description.
    pub method_id: u32,
    /// The encoded request message.
    pub args: &'a [u8],
    /// Descriptor that is sent with the request. It is taken if the call starts.
    pub fd: &'a mut Option<OwnedFd>,
    /// Time at which the call fails if it has not ended.
    pub deadline: Option<Instant>,
    /// Bytes of replies that may wait for the program, for streams.
    pub window: u32,
    /// A thread waits for the reply, as hooks are told.
    pub is_blocking: bool,
}

/// Meaning of a frame for a [`Caller`].
#[derive(Debug)]
pub enum CallerEvent<'a> {
    /// Nothing for a call, or for several: see [`Caller::next_failed`].
    None,
    /// A reply to a call.
    Reply {
        /// Number of the call.
        id: u64,
        /// The encoded reply message; `None` at the end of a stream without a last message.
        body: Option<&'a [u8]>,
        /// True if further replies will come.
        has_more: bool,
    },
    /// A call failed.
    Failed {
        /// Number of the call.
        id: u64,
        /// The reason.
        error: CallError,
    },
}

#[derive(Debug)]
struct Binding {
    service: &'static Service,
    state: BindingState,
}

#[derive(Debug)]
enum BindingState {
    Asked { request: u64 },
    Bound { service_id: u32, method_ids: Vec<u32> },
    Missing,
}

#[derive(Debug)]
struct Pending {
    method: &'static Method,
    deadline: Option<Instant>,
    window: Window,
    /// The call itself, until its service is bound.
    unsent: Option<Box<Unsent>>,
}

/// Room for the replies of a stream.
#[derive(Debug)]
struct Window {
    size: u32,
    /// The host was told, and waits for credit.
    is_known: bool,
    /// Bytes of replies that the program has not taken.
    held: usize,
    /// Bytes that it has taken, and for which no credit was sent.
    taken: u32,
}

#[derive(Debug)]
struct Unsent {
    binding: usize,
    method_id: u32,
    args: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl Caller {
    /// Makes the caller of a new connection. Unless `seed` is 0, the host is told it.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { connection: Connection::new(seed), ..Self::default() }
    }

    /// Tells hooks the process at the other end.
    pub(crate) fn set_peer(&mut self, peer: &Peer) {
        self.connection.set_peer(peer);
    }

    /// Starts a call, and returns its number. Binds its service first if necessary; the call is
    /// sent after that.
    ///
    /// # Errors
    ///
    /// If the call cannot be made. Nothing was sent then.
    pub fn start(&mut self, call: NewCall<'_>, now: Instant, out: &mut WriteQueue) -> Result<u64, CallError> {
        self.start_traced(call, now, out).map(|(id, _)| id)
    }

    /// As [`start`](Self::start), with the hooks' part of the call.
    pub(crate) fn start_traced(
        &mut self,
        call: NewCall<'_>,
        now: Instant,
        out: &mut WriteQueue,
    ) -> Result<(u64, Traced), CallError> {
        let method = call.service.method(call.method_id).expect("generated code names an existing method");
        let name = method.full_name;
        if call.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(CallError::Timeout(name));
        }
        let limit = MAX_FRAME - MAX_CALL_OVERHEAD;
        if call.args.len() > limit {
            return Err(CallError::TooLarge { method: name, len: call.args.len(), limit });
        }
        let binding = self.binding(call.service, out);
        let id = self.last_request + 1;
        let mut pending = Pending {
            method,
            deadline: call.deadline,
            window: Window { size: call.window, is_known: false, held: 0, taken: 0 },
            unsent: None,
        };
        let traced = Traced::request(method, || Begin {
            connection: &self.connection,
            request_id: id,
            message: call.args,
            has_fd: call.fd.is_some(),
            is_blocking: call.is_blocking,
            is_from_acceptor: false,
            own_flow_id: None,
        });
        let failed = |error: CallError| {
            traced.request_sent();
            traced.failed(1, &error);
            error
        };
        match &self.bindings[binding].state {
            BindingState::Missing => return Err(failed(CallError::NoSuchService(name))),
            BindingState::Asked { .. } => {
                self.unsent_bytes += call.args.len();
                self.unsent_fds += usize::from(call.fd.is_some());
                let args = call.args.to_vec();
                pending.unsent =
                    Some(Box::new(Unsent { binding, method_id: call.method_id, args, fd: call.fd.take() }));
            }
            BindingState::Bound { service_id, method_ids } => {
                let target = (*service_id, method_ids[call.method_id as usize - 1]);
                pending.send(id, target, call.args, call.fd.take(), self.features, now, out).map_err(failed)?;
            }
        }
        self.last_request = id;
        if pending.unsent.is_some() || method.kind != Kind::OneWay {
            if let Some(deadline) = pending.deadline {
                self.deadlines.insert((deadline, id));
            }
            self.pending.insert(id, pending);
        }
        Ok((id, traced))
    }

    /// Handles a frame of `len` bytes that arrived. Call [`next_failed`](Self::next_failed) until it
    /// returns `None`.
    pub fn handle<'a>(
        &mut self,
        frame: &RpcFrame<'a>,
        len: usize,
        now: Instant,
        out: &mut WriteQueue,
    ) -> CallerEvent<'a> {
        let id = frame.request_id;
        let is_bind = |binding: &Binding| matches!(binding.state, BindingState::Asked { request } if request == id);
        if let Some(binding) = self.bindings.iter().position(is_bind) {
            self.bound(binding, frame, now, out);
            return CallerEvent::None;
        }
        let Some(pending) = self.pending.get_mut(&id).filter(|pending| pending.unsent.is_none()) else {
            self.unexpected += 1;
            return CallerEvent::None;
        };
        let method = pending.method.full_name;
        let error = match frame.body {
            RpcBody::InvokeMethodReply { success: true, has_more, body, .. } => {
                let is_stream = pending.method.kind == Kind::ServerStream;
                let (has_more, body) =
                    if is_stream { (has_more, body) } else { (false, Some(body.unwrap_or_default())) };
                let window = &mut pending.window;
                let most = window.size as usize + MAX_FRAME + ROOM_OF_FD;
                let limit = if window.is_known { most } else { MAX_STREAM_BACKLOG };
                window.held += room_of(len, frame.has_fd);
                if !has_more {
                    self.forget(id);
                    return CallerEvent::Reply { id, body, has_more };
                } else if window.held <= limit {
                    return CallerEvent::Reply { id, body, has_more };
                }
                let len = window.held;
                if self.features.has(Features::CANCEL) {
                    encode::cancel(out.buffer(), id);
                }
                CallError::TooLarge { method, len, limit }
            }
            RpcBody::InvokeMethodReply { status, .. } => {
                let status = status_of(status);
                // The clock of the service was faster than ours.
                let is_late = pending.deadline.is_some() && status == Code::DeadlineExceeded.into();
                if is_late { CallError::Timeout(method) } else { CallError::Status { method, status } }
            }
            RpcBody::RequestError { error } => {
                let text = String::from_utf8_lossy(error);
                CallError::Status { method, status: Status::new(Code::Unimplemented, text) }
            }
            // A reply of the wrong type consumes the request.
            _ => CallError::Malformed(method),
        };
        self.forget(id);
        CallerEvent::Failed { id, error }
    }

    /// Tells that the program took a reply of a stream, of a frame of `len` bytes, and sends credit
    /// if it is time. `has_fd` is that of the frame.
    pub fn taken(&mut self, id: u64, len: usize, has_fd: bool, out: &mut WriteQueue) {
        let Some(window) = self.pending.get_mut(&id).map(|pending| &mut pending.window) else { return };
        let len = room_of(len, has_fd);
        window.held = window.held.saturating_sub(len);
        window.taken = window.taken.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        if window.is_known && window.taken >= window.size / 2 {
            encode::credit(out.buffer(), id, std::mem::take(&mut window.taken));
        }
    }

    /// Stops waiting for a call, and tells the host so if it understands that. Returns false if the
    /// call has ended already.
    pub fn cancel(&mut self, id: u64, out: &mut WriteQueue) -> bool {
        let Some(pending) = self.forget(id) else { return false };
        if pending.unsent.is_none() && self.features.has(Features::CANCEL) {
            encode::cancel(out.buffer(), id);
        }
        true
    }

    /// Lets the calls fail whose deadline has passed: see [`next_failed`](Self::next_failed).
    pub fn expire(&mut self, now: Instant, out: &mut WriteQueue) {
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            let Some(pending) = self.pending.get(&id) else {
                self.deadlines.pop_first();
                continue;
            };
            let error = CallError::Timeout(pending.method.full_name);
            self.cancel(id, out);
            self.failed.push_back((id, error));
        }
    }

    /// Lets all calls fail because the connection has ended.
    pub fn disconnect(&mut self) {
        self.deadlines.clear();
        (self.unsent_bytes, self.unsent_fds) = (0, 0);
        for (id, pending) in std::mem::take(&mut self.pending) {
            self.failed.push_back((id, CallError::Disconnected(pending.method.full_name)));
        }
    }

    /// Returns a call that failed without a frame of its own.
    pub fn next_failed(&mut self) -> Option<(u64, CallError)> {
        self.failed.pop_front()
    }

    /// Returns the time at which [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Returns the extensions that both sides know.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// Returns the seed of the connection for flow ids.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.connection.seed()
    }

    /// Returns the number of calls that have not ended.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.pending.len()
    }

    /// Returns the error if the host has answered that it lacks the service or the method.
    pub(crate) fn refusal(&self, service: &'static Service, method_id: u32) -> Option<CallError> {
        let name = service.method(method_id)?.full_name;
        let binding = self.bindings.iter().find(|binding| std::ptr::eq(binding.service, service))?;
        match &binding.state {
            BindingState::Missing => Some(CallError::NoSuchService(name)),
            BindingState::Bound { method_ids, .. } if method_ids[method_id as usize - 1] == 0 => {
                Some(CallError::NoSuchMethod(name))
            }
            _ => None,
        }
    }

    /// Returns true if the call waits until its service is bound.
    pub(crate) fn is_unsent(&self, id: u64) -> bool {
        self.pending.get(&id).is_some_and(|pending| pending.unsent.is_some())
    }

    /// Returns the number of bytes of calls that wait until their service is bound.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Returns the number of descriptors of calls that wait until their service is bound.
    #[must_use]
    pub fn unsent_fds(&self) -> usize {
        self.unsent_fds
    }

    /// Returns the number of frames that answered no call.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }

    /// Returns the index of a service's binding, which is asked for if it is new.
    fn binding(&mut self, service: &'static Service, out: &mut WriteQueue) -> usize {
        if let Some(known) = self.bindings.iter().position(|binding| std::ptr::eq(binding.service, service)) {
            return known;
        }
        self.last_request += 1;
        let request = self.last_request;
        let (features, seed) =
            if self.bindings.is_empty() { (Features::ALL, self.connection.seed()) } else { Default::default() };
        let state = match encode::bind_service(out.buffer(), request, service.name, features, seed) {
            Ok(()) => BindingState::Asked { request },
            // No peer can have a service of that name.
            Err(_) => BindingState::Missing,
        };
        self.bindings.push(Binding { service, state });
        self.bindings.len() - 1
    }

    /// Handles the answer to a bind, and sends the calls that waited for it.
    fn bound(&mut self, index: usize, frame: &RpcFrame<'_>, now: Instant, out: &mut WriteQueue) {
        if !std::mem::replace(&mut self.was_bound, true) {
            self.features = frame.features & Features::ALL;
        }
        let binding = &mut self.bindings[index];
        binding.state = match frame.body {
            RpcBody::BindServiceReply { success: true, service_id, methods } => {
                BindingState::Bound { service_id, method_ids: method_ids(binding.service, methods) }
            }
            _ => BindingState::Missing,
        };
        let is_waiting = |pending: &Pending| pending.unsent.as_ref().is_some_and(|unsent| unsent.binding == index);
        let waiting: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| is_waiting(pending)).map(|(&id, _)| id).collect();
        for id in waiting {
            let pending = self.pending.get_mut(&id).expect("it was just found");
            let Some(unsent) = pending.unsent.take() else { continue };
            self.unsent_bytes -= unsent.args.len();
            self.unsent_fds -= usize::from(unsent.fd.is_some());
            let sent = match &binding.state {
                BindingState::Bound { service_id, method_ids } => {
                    let target = (*service_id, method_ids[unsent.method_id as usize - 1]);
                    pending.send(id, target, &unsent.args, unsent.fd, self.features, now, out)
                }
                _ => Err(CallError::NoSuchService(pending.method.full_name)),
            };
            if sent.is_err() || pending.method.kind == Kind::OneWay {
                if let Some(deadline) = pending.deadline {
                    self.deadlines.remove(&(deadline, id));
                }
                self.pending.remove(&id);
            }
            if let Err(error) = sent {
                self.failed.push_back((id, error));
            }
        }
    }

    fn forget(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(deadline) = pending.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        if let Some(unsent) = &pending.unsent {
            self.unsent_bytes -= unsent.args.len();
            self.unsent_fds -= usize::from(unsent.fd.is_some());
        }
        Some(pending)
    }
}

impl Pending {
    /// Writes the call. `target` has the host's ids of the service and of the method, which is 0 if
    /// the host lacks it.
    #[expect(clippy::too_many_arguments, reason = "parts of one frame")]
    fn send(
        &mut self,
        id: u64,
        target: (u32, u32),
        args: &[u8],
        fd: Option<OwnedFd>,
        features: Features,
        now: Instant,
        out: &mut WriteQueue,
    ) -> Result<(), CallError> {
        let (service_id, method_id) = target;
        let method = self.method.full_name;
        if method_id == 0 {
            return Err(CallError::NoSuchMethod(method));
        }
        let timeout = self.deadline.filter(|_| features.has(Features::DEADLINE)).map(|deadline| {
            // Rounded up: the service must not be out of time before this side.
            let left = deadline.saturating_duration_since(now).as_nanos().div_ceil(1000);
            u64::try_from(left).unwrap_or(u64::MAX).max(1)
        });
        self.window.is_known = self.method.kind == Kind::ServerStream && features.has(Features::CREDIT);
        let call = InvokeMethod {
            service_id,
            method_id,
            args,
            drop_reply: self.method.kind == Kind::OneWay,
            timeout_us: timeout.unwrap_or(0),
            window: self.window.is_known.then_some(self.window.size),
        };
        let written = match fd {
            Some(fd) => {
                let is_marked = features.has(Features::DESCRIPTORS);
                out.with_fd(fd, |buffer| encode::invoke_method(buffer, id, &call, is_marked))
            }
            None => encode::invoke_method(out.buffer(), id, &call, false),
        };
        written.map_err(|error| too_large(method, &error))
    }
}

/// Returns the host's ids of the methods, by position; 0 for those that it lacks.
fn method_ids(service: &Service, offered: Methods<'_>) -> Vec<u32> {
    // A hostile list may have thousands of entries, and each method looks at all of them once.
    let id_of = |name: &str| offered.iter().find(|(_, offered)| *offered == name.as_bytes()).map_or(0, |(id, _)| id);
    service.methods.iter().map(|method| id_of(method.name)).collect()
}

fn status_of(status: Option<WireStatus<'_>>) -> Status {
    match status {
        Some(status) => Status::new(Code::from_number(status.code), String::from_utf8_lossy(status.text))
            .with_details(status.details),
        None => Status::new(Code::Unknown, "rejected"),
    }
}

fn too_large(method: &'static str, error: &Error) -> CallError {
    let len = if let Error::MessageTooLarge { len } = error { *len } else { 0 };
    CallError::TooLarge { method, len, limit: MAX_FRAME }
}
