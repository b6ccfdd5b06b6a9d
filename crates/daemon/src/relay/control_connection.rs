//! The relay's own connection to the service. It reports which machine this is, and reads clocks
//! (`docs/spec/wire-protocol.md` §16).
//!
//! ```text
//! Waiting ─ Connecting ─ Binding ─ Introducing ─┬─ Pinging ─ Updating ─ Resting ─┐
//!    ▲          │           │           │       └────────────────────────────────┘
//!    └──────────┴───────────┴───────────┴── on every failure, after a growing delay
//! ```
//!
//! With a shared secret, both sides prove it (`Proving`) between `Connecting` and `Binding`.
//!
//! It never waits by itself. The loop asks for its deadline ([`Control::deadline_ns`]) and its
//! socket ([`Control::socket`]).

use std::os::fd::{AsFd as _, BorrowedFd};

use esatto_ipc::frame::{PeerIdentity, encode};
use esatto_ipc::{
    Address, Client, ClientEvent, ConnectAttempt, Connection, Error as IpcError, Limits, RequestId, Stream,
};
use esatto_ports::Rpc;
use esatto_ports::relay_port::{self, method};
use esatto_schema::sync_clock_request::{Clock, Phase};
use esatto_schema::{InitRelayRequest, SyncClockRequest};
use rustix::event::epoll::EventFlags;

use super::connect::begin_to_connect;
use super::handshake::{Distrust, Handshake};
use super::machine_identity;
use super::options::RelayOptions;
use crate::clocks;
use crate::closers::Closers;
use crate::shared_secret::SharedSecret;

const SECOND_NS: u64 = 1_000_000_000;
/// Delay before the second attempt to connect. Each further delay is twice as long …
const FIRST_DELAY_NS: u64 = SECOND_NS;
/// … up to this one.
const LONGEST_DELAY_NS: u64 = 30 * SECOND_NS;
/// Time between two rounds of clock readings. Readers of traces rely on it to tell rounds apart.
const REST_NS: u64 = 30 * SECOND_NS;
/// Time that a service may take to accept a connection, and to answer.
const PATIENCE_NS: u64 = 10 * SECOND_NS;

/// The control connection in any of its states.
#[derive(Debug)]
pub(crate) struct Control {
    /// Frame with the identity of this relay.
    greeting: Vec<u8>,
    introduction: InitRelayRequest,
    secret: Option<SharedSecret>,
    state: State,
    closers: Closers,
    deadline_ns: u64,
    delay_ns: u64,
    /// The service knows everything that the relay reports.
    is_known: bool,
    /// The last failure that was logged. A failure that lasts is logged once.
    told: Option<String>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Connecting(ConnectAttempt),
    Proving(Box<Handshake>),
    Connected(Box<Link>),
}

#[derive(Debug)]
struct Link {
    connection: Connection,
    client: Client,
    step: Step,
}

/// Answer that the relay waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Binding,
    Introducing(RequestId),
    Pinging(RequestId),
    Updating(RequestId),
    Resting,
    /// The service does not support the relay's calls.
    Idle,
}

/// Reason why a connection is given up.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Ipc(#[from] IpcError),
    #[error(transparent)]
    Distrust(#[from] Distrust),
    #[error(
        "the service does not offer the relay port; start it with traced --enable-relay-endpoint, \
         and if it has --secret-file, give this relay the same secret"
    )]
    NoRelayPort,
    #[error("the service does not answer")]
    Silent,
    #[error("the service closed the connection")]
    Closed,
    #[error("the name of the service cannot be resolved")]
    Unresolved,
}

/// Work for the loop after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// The connection has ended: look up its address again, if it has a name.
    Disconnected,
}

impl Control {
    pub(crate) fn new(options: &RelayOptions, closers: Closers) -> Result<Self, IpcError> {
        let own = PeerIdentity {
            pid: Some(std::process::id() as i32),
            uid: Some(rustix::process::geteuid().as_raw() as i32),
            machine_id_hint: &options.machine_id_hint,
            machine_name: &options.machine_name,
        };
        let mut greeting = Vec::new();
        encode::set_peer_identity(&mut greeting, &own)?;
        let system_info = machine_identity::system_info(&options.version, &options.machine_name);
        Ok(Self {
            greeting,
            introduction: InitRelayRequest { system_info: Some(Box::new(system_info)), ..InitRelayRequest::default() },
            secret: options.secret.clone(),
            state: State::Waiting,
            closers,
            deadline_ns: 0,
            delay_ns: FIRST_DELAY_NS,
            is_known: false,
            told: None,
        })
    }

    /// Returns when to call [`on_deadline`](Self::on_deadline), on the monotonic clock.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Returns the socket to watch, and the events to wait for.
    pub(crate) fn socket(&self) -> Option<(BorrowedFd<'_>, EventFlags)> {
        Some(match &self.state {
            State::Waiting => return None,
            State::Connecting(connecting) => (connecting.as_fd(), EventFlags::OUT),
            State::Proving(handshake) => (handshake.as_fd(), handshake.wanted()),
            State::Connected(link) => {
                let mut flags = EventFlags::empty();
                // If the service is delayed, its answer comes late, and the deadline ends the
                // connection.
                flags.set(EventFlags::IN, link.connection.wants_read());
                flags.set(EventFlags::OUT, link.connection.wants_write());
                (link.connection.as_fd(), flags)
            }
        })
    }

    /// Handles a deadline that has passed. `service` is the address to connect to, if it is known.
    pub(crate) fn on_deadline(&mut self, service: Option<&Address>, now_ns: u64) -> News {
        let result = match &mut self.state {
            State::Waiting => match service.map(|service| begin_to_connect(service, &self.closers)) {
                Some(Ok(connecting)) => {
                    self.state = State::Connecting(connecting);
                    self.deadline_ns = now_ns.saturating_add(PATIENCE_NS);
                    Ok(())
                }
                Some(Err(e)) => Err(e.into()),
                None => Err(Failure::Unresolved),
            },
            State::Connected(link) if link.step == Step::Resting => link.ping(),
            State::Connecting(_) | State::Proving(_) | State::Connected(_) => Err(Failure::Silent),
        };
        self.conclude(result, now_ns)
    }

    /// Handles an event on the socket.
    pub(crate) fn on_socket(&mut self, now_ns: u64) -> News {
        let result = match core::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting => Ok(()),
            State::Connecting(connecting) => self.begin(connecting).map(|state| self.state = state),
            State::Proving(handshake) => self.prove(handshake).map(|state| self.state = state),
            State::Connected(mut link) => {
                let result = link.receive(&self.introduction);
                self.state = State::Connected(link);
                result
            }
        };
        self.conclude(result, now_ns)
    }

    fn begin(&self, connecting: ConnectAttempt) -> Result<State, Failure> {
        let stream = connecting.finish()?;
        Ok(match &self.secret {
            Some(secret) => State::Proving(Box::new(Handshake::begin(stream, secret.clone())?)),
            None => State::Connected(Box::new(Link::begin(stream, &self.greeting)?)),
        })
    }

    fn prove(&self, mut handshake: Box<Handshake>) -> Result<State, Failure> {
        Ok(match handshake.on_socket()? {
            true => State::Connected(Box::new(Link::begin(handshake.into_stream(), &self.greeting)?)),
            false => State::Proving(handshake),
        })
    }

    /// Sets the deadline of the next step.
    fn conclude(&mut self, result: Result<(), Failure>, now_ns: u64) -> News {
        if let Err(failure) = result {
            return self.give_up(&failure, now_ns);
        }
        if let State::Connected(link) = &self.state {
            let (worked, wait_ns) = match link.step {
                Step::Resting => (true, REST_NS),
                Step::Idle => (true, u64::MAX),
                _ => (false, PATIENCE_NS),
            };
            if worked {
                self.delay_ns = FIRST_DELAY_NS;
                self.told = None;
                if !core::mem::replace(&mut self.is_known, true) {
                    log::info!("The service knows this machine and its clocks");
                }
            }
            self.deadline_ns = now_ns.saturating_add(wait_ns);
        }
        News::Nothing
    }

    fn give_up(&mut self, failure: &Failure, now_ns: u64) -> News {
        let text = failure.to_string();
        let seconds = self.delay_ns / SECOND_NS;
        if self.told.as_ref() == Some(&text) {
            log::debug!("No control connection: {text}; trying again in {seconds} s");
        } else {
            log::warn!("No control connection, so clocks are not synchronised: {text}; trying again in {seconds} s");
            self.told = Some(text);
        }
        self.state = State::Waiting;
        self.is_known = false;
        self.deadline_ns = now_ns.saturating_add(self.delay_ns);
        self.delay_ns = self.delay_ns.saturating_mul(2).min(LONGEST_DELAY_NS);
        News::Disconnected
    }
}

impl Link {
    fn begin(stream: Stream, greeting: &[u8]) -> Result<Self, Failure> {
        let connection = Connection::new(stream, Limits::CLIENT);
        let mut link = Self { connection, client: Client::new(), step: Step::Binding };
        let out = link.connection.out().buffer();
        out.extend_from_slice(greeting);
        link.client.bind(relay_port::SERVICE.name, out)?;
        link.connection.flush_writes()?;
        Ok(link)
    }

    /// Reads the frames that have arrived, and takes the next steps.
    fn receive(&mut self, introduction: &InitRelayRequest) -> Result<(), Failure> {
        self.connection.on_readable()?;
        while let Some(step) = self.next_step()? {
            match step {
                Next::Introduce => match self.call::<method::InitRelay>(introduction)? {
                    Some(request) => self.step = Step::Introducing(request),
                    // Services of v43 to v49 support only clocks.
                    None => self.ping()?,
                },
                Next::Ping => self.ping()?,
                Next::Update => {
                    let request = self.sync_clock(Phase::UPDATE)?;
                    self.step = request.map_or(Step::Idle, Step::Updating);
                }
                Next::Rest => self.step = Step::Resting,
            }
        }
        self.connection.flush_writes()?;
        if self.connection.is_closed() { Err(Failure::Closed) } else { Ok(()) }
    }

    /// Handles frames until one of them leads to a next step.
    fn next_step(&mut self) -> Result<Option<Next>, Failure> {
        while let Some((frame, _)) = self.connection.next_frame()? {
            let (request_id, success) = match self.client.handle(&frame) {
                Some(ClientEvent::Bound) => return Ok(Some(Next::Introduce)),
                Some(ClientEvent::BindFailed) => return Err(Failure::NoRelayPort),
                Some(ClientEvent::Reply { request_id, success, .. }) => (request_id, success),
                Some(ClientEvent::RequestError { request_id, .. }) => (request_id, false),
                _ => continue,
            };
            match self.step {
                // A service that does not support InitRelay may still accept clocks.
                Step::Introducing(expected) if expected == request_id => return Ok(Some(Next::Ping)),
                Step::Pinging(expected) if expected == request_id && success => return Ok(Some(Next::Update)),
                Step::Pinging(expected) | Step::Updating(expected) if expected == request_id => {
                    return Ok(Some(Next::Rest));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Begins a round of clock readings.
    fn ping(&mut self) -> Result<(), Failure> {
        let request = self.sync_clock(Phase::PING)?;
        self.step = request.map_or(Step::Idle, Step::Pinging);
        Ok(())
    }

    /// Sends the clocks of this machine, read as late as possible.
    fn sync_clock(&mut self, phase: Phase) -> Result<Option<RequestId>, Failure> {
        let now = clocks::now();
        let clocks = now.builtin_clocks().map(|(id, timestamp)| Clock {
            clock_id: Some(id),
            timestamp: Some(timestamp),
            ..Clock::default()
        });
        let request = SyncClockRequest { phase: Some(phase), clocks: clocks.collect(), ..SyncClockRequest::default() };
        self.call::<method::SyncClock>(&request)
    }

    fn call<M: Rpc>(&mut self, request: &M::Request) -> Result<Option<RequestId>, Failure> {
        let request = self.client.invoke_message::<M>(request, self.connection.out().buffer())?;
        self.connection.flush_writes()?;
        Ok(request)
    }
}

/// Next step after an answer.
#[derive(Clone, Copy, Debug)]
enum Next {
    Introduce,
    Ping,
    Update,
    Rest,
}
