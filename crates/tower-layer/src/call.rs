//! A call while it is recorded: its slice, its flows, its messages and its end.

use core::mem;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use esatto::{Arg, Begun, Event, Flow, Lane, Lanes, Name, Site, Timestamp, record};
use http::{HeaderMap, StatusCode};

use crate::options::Options;
use crate::sites::Sites;
use crate::status::{self, Status};

/// The side of a call that this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// The way that a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer = 0,
    ToClient = 1,
}

/// Tracks of all calls. A call has a lane for itself until it ends.
static CLIENT_LANES: Lanes = Lanes::new("rpc client");
static SERVER_LANES: Lanes = Lanes::new("rpc server");

/// A first message that is older when the second one follows gets no instant: readers of a trace
/// that is streamed into a file expect its events within seconds.
const LATEST_FIRST: Duration = Duration::from_secs(1);

/// Facts about a call that its request tells.
pub(crate) struct Beginning<'a> {
    pub(crate) role: Role,
    pub(crate) name: Cow<'a, str>,
    pub(crate) flow: Option<u64>,
    /// The trace id of a distributed request.
    pub(crate) correlation: Option<&'a str>,
    pub(crate) is_grpc: bool,
    pub(crate) timeout: Option<Duration>,
}

/// A call that is recorded.
#[derive(Debug)]
pub(crate) struct Call {
    sites: &'static Sites,
    role: Role,
    /// The flow of the call. Those of its messages derive from it.
    flow: Option<u64>,
    is_grpc: bool,
    records_messages: bool,
    records_status_messages: bool,
    /// From then on, the drop of the call means that it has exceeded its deadline.
    latest: Option<Instant>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` after the end.
    open: Option<Open>,
    /// A name that is not known yet.
    new_name: Option<Box<str>>,
    /// By [`Direction`]; `None` if they are not seen.
    messages: [Option<Messages>; 2],
    http_status: Option<StatusCode>,
}

#[derive(Debug)]
struct Open {
    /// `None` if the call has no slice.
    lane: Option<Lane>,
    begun: Begun,
}

/// The messages of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    count: u64,
    /// The first message, until it is known that others follow.
    first: Option<(Timestamp, Instant, u32)>,
}

impl Call {
    /// Begins the slice of a call. Returns nothing if no session has recorded that.
    pub(crate) fn begin(sites: &'static Sites, options: &Options, call: Beginning<'_>) -> Option<Arc<Self>> {
        let Beginning { role, name, flow, correlation, is_grpc, timeout } = call;
        let (begin, new_name) = match sites.begin(&name) {
            Ok(known) => (known, None),
            Err(unnamed) => (unnamed, Some(&*name)),
        };
        let lane = options.slices.then(|| match role {
            Role::Client => CLIENT_LANES.take(),
            Role::Server => SERVER_LANES.take(),
        });
        let site = if options.slices { &begin.slice } else { &begin.instant };
        let mut details = |event: &mut Event<'_>| {
            static TIMEOUT: Name = Name::new("timeout_us");
            if let Some(id) = correlation {
                event.correlate(id);
            }
            if let Some(timeout) = timeout {
                event.annotate_static(&TIMEOUT, u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
            }
        };
        let has_details = correlation.is_some() || timeout.is_some();
        let mut args = Args::new();
        args.add(new_name.map(Arg::Name));
        args.add(lane.as_ref().map(|lane| Arg::Track(lane.track())));
        args.add(Some(Arg::Str(match role {
            Role::Client => "client",
            Role::Server => "server",
        })));
        args.add(flow.map(Arg::Flow));
        args.add(has_details.then_some(Arg::With(&mut details)));
        let begun = Begun::by(|| record(site, args.all()));
        if begun.instances() == 0 {
            return None;
        }
        let new_name = new_name.map(Box::from);
        let open = Some(Open { lane, begun });
        Some(Arc::new(Self {
            sites,
            role,
            flow,
            is_grpc,
            records_messages: options.messages,
            records_status_messages: options.status_messages,
            latest: timeout.and_then(|timeout| match role {
                Role::Client => Instant::now().checked_add(timeout),
                // The client's time began earlier, so its end arrives before that of the server's.
                Role::Server => Instant::now().checked_add(timeout - timeout / 10),
            }),
            state: Mutex::new(State { open, new_name, messages: [None; 2], http_status: None }),
        }))
    }

    pub(crate) const fn is_grpc(&self) -> bool {
        self.is_grpc
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the messages of a direction are seen.
    pub(crate) fn see_messages(&self, direction: Direction) {
        self.lock().messages[direction as usize] = Some(Messages::default());
    }

    /// Notes that the messages of a direction cannot be counted.
    pub(crate) fn lose_messages(&self, direction: Direction) {
        self.lock().messages[direction as usize] = None;
    }

    /// Records the head of the response, as it is sent or received.
    pub(crate) fn reply(&self, code: StatusCode) {
        let mut state = self.lock();
        state.http_status = Some(code);
        let Some(open) = &state.open else { return };
        let flow = self.flow.map(|id| match self.role {
            Role::Server => Arg::Flow(id),
            Role::Client => Arg::EndFlow(id),
        });
        open.record(&self.sites.reply, [flow, None, None, None]);
    }

    /// Records a message whose last byte is sent or received.
    pub(crate) fn message(&self, direction: Direction, bytes: u32) {
        let mut state = self.lock();
        let State { open: Some(open), messages, .. } = &mut *state else { return };
        let Some(messages) = &mut messages[direction as usize] else { return };
        messages.count += 1;
        if !self.records_messages {
            return;
        }
        // The arrows of a call with one message are those of the call.
        match (messages.count, messages.first.take()) {
            (1, _) => messages.first = Some((Timestamp::now(), Instant::now(), bytes)),
            (_, Some((at, then, first_bytes))) if then.elapsed() < LATEST_FIRST => {
                self.write_message(open, direction, 1, first_bytes, Some(&at));
                self.write_message(open, direction, messages.count, bytes, None);
            }
            _ => self.write_message(open, direction, messages.count, bytes, None),
        }
    }

    fn write_message(&self, open: &Open, direction: Direction, number: u64, bytes: u32, at: Option<&Timestamp>) {
        let flow = self.flow.map(|id| Flow::derived(id, 2 * number + direction as u64).id());
        let is_sent = (self.role == Role::Client) == (direction == Direction::ToServer);
        let (site, flow) = match is_sent {
            true => (&self.sites.sent, flow.map(Arg::Flow)),
            false => (&self.sites.received, flow.map(Arg::EndFlow)),
        };
        open.record(site, [Some(Arg::U64(number)), Some(Arg::U64(bytes.into())), flow, at.map(Arg::At)]);
    }

    /// Ends the slice. `trailers` are those of gRPC, or the headers of a response without a body.
    pub(crate) fn end(&self, end: End, trailers: Option<&HeaderMap>) {
        let mut state = self.lock();
        let Some(Open { lane, begun }) = state.open.take() else { return };
        let http_status = state.http_status;
        let status = match end {
            End::Complete if self.is_grpc => trailers.and_then(Status::find).unwrap_or_else(|| match http_status {
                Some(code) if code != StatusCode::OK => Status::of_http_for_grpc(code),
                _ => Status::UNKNOWN,
            }),
            End::Complete => http_status.map_or(Status::OK, Status::of_http),
            End::Dropped => Status::CANCELLED,
            End::Failed => Status::ERROR,
        };
        // The layer that enforces a deadline drops the call. Servers of tonic send `cancelled`.
        let is_late = || self.latest.is_some_and(|latest| Instant::now() >= latest);
        let is_cut = end == End::Failed || status == Status::CANCELLED;
        let status = if is_cut && is_late() { Status::DEADLINE_EXCEEDED } else { status };
        if let (Status::OK, Some(name)) = (status, state.new_name.take()) {
            self.sites.learn(&name);
        }
        // Without a slice there is nothing to end.
        let Some(lane) = lane else { return };
        let [to_server, to_client] = state.messages.map(|messages| messages.map(|messages| messages.count));
        let (sent, received) = match self.role {
            Role::Client => (to_server, to_client),
            Role::Server => (to_client, to_server),
        };
        let text = trailers.filter(|_| self.records_status_messages).and_then(status::message);
        let mut details = |event: &mut Event<'_>| {
            static MESSAGE: Name = Name::new("status_message");
            if let Some(text) = text {
                event.annotate_static(&MESSAGE, text);
            }
        };
        let mut args = Args::new();
        args.add(Some(Arg::Track(lane.track())));
        args.add(Some(Arg::Str(status.text())));
        let site = match (http_status, sent, received) {
            (Some(code), _, _) if !self.is_grpc => {
                args.add(Some(Arg::U64(code.as_u16().into())));
                &self.sites.end_http
            }
            (_, sent, received) => {
                args.add(sent.map(Arg::U64));
                args.add(received.map(Arg::U64));
                match (sent, received) {
                    (None, None) => &self.sites.end,
                    (Some(_), None) => &self.sites.end_sent,
                    (None, Some(_)) => &self.sites.end_received,
                    (Some(_), Some(_)) => &self.sites.end_both,
                }
            }
        };
        args.add(text.is_some().then_some(Arg::With(&mut details)));
        begun.record(site, args.all());
        // From here on the lane may have another user.
    }
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of the response is there.
    Complete,
    /// The response, or its future, was dropped before.
    Dropped,
    /// The service or the body has returned an error.
    Failed,
}

impl Open {
    /// Records an instant in the sessions that have the begin of the call.
    fn record<'a>(&'a self, site: &'static Site, more: [Option<Arg<'a>>; 4]) {
        let mut args = Args::new();
        args.add(self.lane.as_ref().map(|lane| Arg::Track(lane.track())));
        for arg in more {
            args.add(arg);
        }
        self.begun.record(site, args.all());
    }
}

/// Owner of a call: its drop is the end of a call that has not ended.
#[derive(Debug)]
pub(crate) struct OpenCall(Option<Arc<Call>>);

impl OpenCall {
    pub(crate) const fn new(call: Arc<Call>) -> Self {
        Self(Some(call))
    }

    /// Returns the call, until it has ended.
    pub(crate) const fn get(&self) -> Option<&Arc<Call>> {
        self.0.as_ref()
    }

    pub(crate) fn end(&mut self, end: End, trailers: Option<&HeaderMap>) {
        if let Some(call) = self.0.take() {
            call.end(end, trailers);
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.end(End::Dropped, None);
    }
}

/// The most arguments that an event of a call has.
const MOST_ARGS: usize = 6;

/// Arguments of an event, of which some may be missing.
struct Args<'a> {
    args: [Arg<'a>; MOST_ARGS],
    count: usize,
}

impl<'a> Args<'a> {
    const fn new() -> Self {
        Self { args: [const { Arg::Bool(false) }; MOST_ARGS], count: 0 }
    }

    fn add(&mut self, arg: Option<Arg<'a>>) {
        if let (Some(arg), Some(slot)) = (arg, self.args.get_mut(self.count)) {
            drop(mem::replace(slot, arg));
            self.count += 1;
        }
    }

    fn all(&mut self) -> &mut [Arg<'a>] {
        &mut self.args[..self.count]
    }
}
