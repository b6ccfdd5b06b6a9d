//! The consumer's half of the protocol: one connection and its sessions, one after the other
//! (`docs/spec/client-library.md` §13, `docs/spec/wire-protocol.md` §§12-15). It does no I/O.
//!
//! ```text
//! Idle ─ start ──────────────→ Starting ─ all started → Started ─ disabled → Ended
//!   └── set up, deferred → Configured ─ start ↗                               │ set up, start: the buffers are freed first
//! ```

mod operations;
mod reading;
#[cfg(test)]
mod tests;
mod timeouts;

use core::mem;
use std::time::{Duration, Instant};

use esatto_ports::Rpc;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::{
    CloneSessionResponseReader, EnableTracingResponseReader, FlushRequest, ObserveEventsRequest,
    ObserveEventsResponseReader, observable_events,
};

use crate::connection::pending_operation::{Completer, Listener};
use crate::connection::transport::{Call, Reply, name_of};
use crate::error::Error;
use crate::os::OwnedFd;
use operations::{Kind, OperationId, Operations};
use reading::Reading;
pub(crate) use reading::Sink;
use timeouts::PATIENCE;

/// A flush that an SDK initiated (3) because of a request (4): `docs/spec/wire-protocol.md` §9,
/// flush flags.
const FLUSH_FLAGS: u64 = 3 << 4 | 4;

/// Commands of a session's owner.
#[derive(Debug)]
pub(crate) enum Command {
    SetUp(Box<SetUp>, Completer),
    Start(Completer),
    Stop(Completer),
    Flush {
        timeout: Option<Duration>,
        done: Completer,
    },
    ChangeConfig {
        request: Vec<u8>,
        done: Completer,
    },
    Stats(Completer),
    ServiceState {
        request: Vec<u8>,
        done: Completer,
    },
    Capabilities(Completer),
    Clone {
        request: Vec<u8>,
        file: Option<OwnedFd>,
        done: Completer,
    },
    Read(Sink, Completer),
    OnStart(Listener),
    OnStop(Listener),
    /// Called only for failures, before the other listeners.
    OnError(Listener),
}

/// The set-up of a session.
#[derive(Debug)]
pub(crate) struct SetUp {
    /// `EnableTracingRequest`.
    pub(crate) request: Vec<u8>,
    /// The file for the service to write.
    pub(crate) file: Option<OwnedFd>,
    /// The service gets it at once and starts later.
    pub(crate) is_deferred: bool,
    /// A trigger starts it.
    pub(crate) is_armed: bool,
    /// How long the service lets data sources flush and stop.
    pub(crate) flush_timeout: Duration,
    pub(crate) stop_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The service waits for the start.
    Configured,
    Starting,
    Started,
    Ended,
}

/// The tag of a call, which comes back with the replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Observe,
    Enable,
    /// The call is answered after the service has processed the configuration with this number: the
    /// second time. Perfetto's service reports a refusal only after it has answered the calls that
    /// arrived together with the configuration.
    Barrier(u32),
    SecondBarrier(u32),
    StartTracing,
    Stats,
    Clone,
    Read,
    /// A call that answers one operation. A streamed answer is put together.
    Of(OperationId),
}

#[derive(Debug)]
pub(crate) struct Consumer {
    calls: Vec<Call<Tag>>,
    phase: Phase,
    /// The number of configurations sent.
    configurations: u32,
    /// The set-up that `start` will send.
    set_up: Option<Box<SetUp>>,
    is_armed: bool,
    flush_timeout: Duration,
    stop_timeout: Duration,
    /// The service has a session of this connection, which may be over.
    has_session: bool,
    is_stopping: bool,
    operations: Operations,
    reading: Option<Reading>,
    /// Commands to execute when the rest of an abandoned trace has arrived.
    parked: Vec<Command>,
    on_start: Vec<Listener>,
    on_stop: Vec<Listener>,
    on_error: Vec<Listener>,
    /// Why the session ended, if it failed.
    failure: Option<Error>,
    /// Why the connection is gone.
    gone: Option<Error>,
    now: Instant,
}

impl Consumer {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            calls: Vec::new(),
            phase: Phase::Idle,
            configurations: 0,
            set_up: None,
            is_armed: false,
            flush_timeout: Duration::ZERO,
            stop_timeout: Duration::ZERO,
            has_session: false,
            is_stopping: false,
            operations: Operations::default(),
            reading: None,
            parked: Vec::new(),
            on_start: Vec::new(),
            on_stop: Vec::new(),
            on_error: Vec::new(),
            failure: None,
            gone: None,
            now,
        }
    }

    /// Returns whether there are calls to make.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the calls to make now.
    pub(crate) fn take_calls(&mut self) -> Vec<Call<Tag>> {
        mem::take(&mut self.calls)
    }

    /// Returns whether the reader has to catch up before anything else is received.
    pub(crate) fn is_paused(&self) -> bool {
        self.reading.as_ref().is_some_and(Reading::is_paused)
    }

    pub(crate) fn command(&mut self, command: Command) {
        if let Some(error) = self.gone.clone() {
            return refuse(command, error);
        }
        let Some(command) = self.park(command) else { return };
        match command {
            Command::SetUp(set_up, done) => self.set_up(set_up, done),
            Command::Start(done) => self.start(done),
            Command::Stop(done) => self.stop(done),
            Command::Flush { timeout, done } => self.flush(timeout, done),
            Command::ChangeConfig { request, done } => {
                if matches!(self.phase, Phase::Idle | Phase::Ended) {
                    return done.complete(Err(Error::state("there is no session to change: set one up first")));
                }
                self.simple::<method::ChangeTraceConfig>(Kind::ChangeConfig, request, done);
            }
            Command::Stats(done) => {
                let is_first = self.operations.first(Kind::Stats).is_none();
                self.operations.add(Kind::Stats, done, self.now + PATIENCE);
                if is_first {
                    // The service accepts only one such call at a time.
                    self.push::<method::GetTraceStats>(Vec::new(), Tag::Stats);
                }
            }
            Command::ServiceState { request, done } => {
                self.simple::<method::QueryServiceState>(Kind::ServiceState, request, done);
            }
            Command::Capabilities(done) => {
                self.simple::<method::QueryCapabilities>(Kind::Capabilities, Vec::new(), done);
            }
            Command::Clone { request, file, done } => self.clone_session(request, file, done),
            Command::Read(sink, done) => self.read(sink, done),
            Command::OnStart(listener) => match self.phase {
                Phase::Started => listener.tell(Ok(())),
                _ => self.on_start.push(listener),
            },
            Command::OnStop(listener) => match self.phase {
                Phase::Ended => listener.tell(self.outcome()),
                _ => self.on_stop.push(listener),
            },
            Command::OnError(listener) => match self.outcome() {
                Err(error) => listener.tell(Err(error)),
                Ok(()) => self.on_error.push(listener),
            },
        }
    }

    pub(crate) fn reply(&mut self, tag: Tag, reply: &Reply<'_>) {
        match tag {
            Tag::Observe => {
                let events = ObserveEventsResponseReader::new(reply.body).events();
                let started = events.and_then(|e| e.all_data_sources_started()).unwrap_or(false);
                // A service without this method starts at once.
                if started || !reply.success {
                    self.started();
                }
            }
            Tag::Enable => self.disabled(reply),
            // Even if the service does not know the method, it has processed the configuration
            // before.
            Tag::Barrier(n) => self.push::<method::QueryCapabilities>(Vec::new(), Tag::SecondBarrier(n)),
            Tag::SecondBarrier(n) if n == self.configurations => self.accepted(),
            Tag::SecondBarrier(_) => {}
            Tag::StartTracing => {
                if !reply.success {
                    self.operations.end_all(Kind::Start, &Err(Error::session("the service refuses to start it")));
                }
            }
            Tag::Stats => self.end_stats(reply),
            Tag::Clone => self.cloned(reply),
            Tag::Read => self.data(reply),
            Tag::Of(id) => {
                if !reply.success {
                    self.operations.end(id, Err(Error::session("the service rejected the call")));
                } else if reply.has_more {
                    self.operations.append(id, reply.body);
                } else {
                    self.operations.end(id, Ok(reply.body.to_vec()));
                }
            }
        }
    }

    /// Handles a call whose method the service does not have.
    pub(crate) fn rejected(&mut self, tag: Tag) {
        let too_old = |what| Err(Error::unsupported(what));
        match tag {
            Tag::Stats => self.operations.end_all(Kind::Stats, &too_old("return statistics")),
            Tag::Clone => self.operations.end_all(Kind::Clone, &too_old("clone sessions")),
            Tag::Of(id) => self.operations.end(id, Err(Error::unsupported("do that"))),
            Tag::StartTracing => self.operations.end_all(Kind::Start, &too_old("start a deferred session")),
            Tag::Observe | Tag::Enable | Tag::Barrier(_) | Tag::SecondBarrier(_) | Tag::Read => {
                let reply = Reply { success: false, has_more: false, body: &[], memory: &mut None };
                self.reply(tag, &reply);
            }
        }
    }

    /// Handles the end of the connection, or the failure to connect.
    pub(crate) fn disconnected(&mut self, error: Error) {
        self.gone = Some(error.clone());
        self.calls.clear();
        self.refuse_parked(&error);
        if let Some(reading) = self.reading.take() {
            reading.end(Err(error.clone()));
        }
        self.failure.get_or_insert_with(|| error.clone());
        self.phase = Phase::Ended;
        // In this order (§4).
        tell(&mut self.on_error, &Err(error.clone()));
        self.operations.end_all(Kind::Start, &Err(error.clone()));
        tell(&mut self.on_start, &Err(error.clone()));
        self.operations.fail(&error);
        tell(&mut self.on_stop, &Err(error));
    }

    fn set_up(&mut self, set_up: Box<SetUp>, done: Completer) {
        if matches!(self.phase, Phase::Configured | Phase::Starting | Phase::Started) {
            return done.complete(Err(Error::state("the session has to be stopped before it is set up again")));
        }
        if self.reading.is_some() {
            return done
                .complete(Err(Error::state("the trace has to be read to its end before the session is set up again")));
        }
        self.phase = Phase::Idle;
        self.failure = None;
        if set_up.is_deferred {
            self.operations.add(Kind::SetUp, done, self.now + PATIENCE);
            self.enable(*set_up, Phase::Configured);
        } else {
            self.set_up = Some(set_up);
            done.complete(Ok(Vec::new()));
        }
    }

    /// Sends the configuration.
    fn enable(&mut self, set_up: SetUp, phase: Phase) {
        use observable_events::Type;
        if mem::replace(&mut self.has_session, true) {
            self.call_one_way::<method::FreeBuffers>();
        }
        self.phase = phase;
        self.is_stopping = false;
        self.is_armed = set_up.is_armed;
        self.flush_timeout = set_up.flush_timeout;
        self.stop_timeout = set_up.stop_timeout;
        let observe =
            ObserveEventsRequest { events_to_observe: vec![Type::TYPE_ALL_DATA_SOURCES_STARTED], ..Default::default() };
        self.call::<method::ObserveEvents>(&observe, Tag::Observe);
        let enable = const { name_of::<method::EnableTracing>() };
        self.calls.push(Call { method: enable, args: set_up.request, tag: Some(Tag::Enable), fd: set_up.file });
        self.configurations = self.configurations.wrapping_add(1);
        self.push::<method::QueryCapabilities>(Vec::new(), Tag::Barrier(self.configurations));
    }

    fn start(&mut self, done: Completer) {
        match (self.phase, self.set_up.take()) {
            (Phase::Idle, Some(set_up)) => {
                self.operations.add(Kind::Start, done, self.now + PATIENCE);
                self.enable(*set_up, Phase::Starting);
            }
            (Phase::Configured, _) => {
                self.operations.add(Kind::Start, done, self.now + PATIENCE);
                self.phase = Phase::Starting;
                self.push::<method::StartTracing>(Vec::new(), Tag::StartTracing);
            }
            (Phase::Idle | Phase::Ended, _) => {
                let error = self.failure.clone();
                done.complete(Err(
                    error.unwrap_or_else(|| Error::state("the session has to be set up before it starts"))
                ));
            }
            (Phase::Starting | Phase::Started, _) => done.complete(Err(Error::state("the session is started already"))),
        }
    }

    /// Handles a configuration that the service has and has not refused.
    fn accepted(&mut self) {
        self.operations.end_all(Kind::SetUp, &Ok(()));
        if self.is_armed && self.phase == Phase::Starting {
            self.started();
        }
    }

    fn started(&mut self) {
        if self.phase != Phase::Starting {
            return;
        }
        self.phase = Phase::Started;
        self.operations.end_all(Kind::Start, &Ok(()));
        tell(&mut self.on_start, &Ok(()));
        self.stop_if_wanted();
    }

    fn stop(&mut self, done: Completer) {
        match self.phase {
            Phase::Idle => {
                self.set_up = None;
                done.complete(Ok(Vec::new()));
            }
            Phase::Ended => done.complete(self.outcome().map(|()| Vec::new())),
            Phase::Configured | Phase::Starting | Phase::Started => {
                self.operations.add(Kind::Stop, done, self.now + self.stop_timeout + 2 * PATIENCE);
                self.stop_if_wanted();
            }
        }
    }

    /// Stops if a stop was requested. A start in progress is completed first.
    fn stop_if_wanted(&mut self) {
        let wanted = self.operations.first(Kind::Stop).is_some() && self.operations.first(Kind::Start).is_none();
        let is_live = matches!(self.phase, Phase::Configured | Phase::Starting | Phase::Started);
        if wanted && is_live && !mem::replace(&mut self.is_stopping, true) {
            self.call_one_way::<method::DisableTracing>();
        }
    }

    /// Handles the end of the session.
    fn disabled(&mut self, reply: &Reply<'_>) {
        let error = EnableTracingResponseReader::new(reply.body).error().map(String::from_utf8_lossy);
        self.failure = match error {
            Some(why) => Some(Error::session(&why)),
            None if !reply.success => Some(Error::session("the service rejected it")),
            None => None,
        };
        self.phase = Phase::Ended;
        let outcome = self.outcome();
        if outcome.is_err() {
            tell(&mut self.on_error, &outcome);
        }
        self.operations.end_all(Kind::SetUp, &outcome);
        let before = outcome.clone().and_then(|()| Err(Error::session("it ended before it started")));
        self.operations.end_all(Kind::Start, &before);
        tell(&mut self.on_start, &before);
        self.operations.end_all(Kind::Stop, &outcome);
        tell(&mut self.on_stop, &outcome);
    }

    /// Returns how the session ended.
    fn outcome(&self) -> Result<(), Error> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn flush(&mut self, timeout: Option<Duration>, done: Completer) {
        if self.phase != Phase::Started {
            return done.complete(Err(Error::state("only a session that is started can be flushed")));
        }
        let timeout_ms = timeout.map_or(0, |t| u32::try_from(t.as_millis()).unwrap_or(u32::MAX).max(1));
        let deadline = self.now + timeout.unwrap_or(self.flush_timeout) + PATIENCE;
        let id = self.operations.add(Kind::Flush, done, deadline);
        let request = FlushRequest { timeout_ms: Some(timeout_ms), flags: Some(FLUSH_FLAGS), ..Default::default() };
        self.call::<method::Flush>(&request, Tag::Of(id));
    }

    fn end_stats(&mut self, reply: &Reply<'_>) {
        if let Some(id) = self.operations.first(Kind::Stats) {
            let rejected = || Error::state("there is no session to count for: set one up first");
            self.operations.end(id, if reply.success { Ok(reply.body.to_vec()) } else { Err(rejected()) });
        }
        if self.operations.first(Kind::Stats).is_some() {
            self.push::<method::GetTraceStats>(Vec::new(), Tag::Stats);
        }
    }

    fn clone_session(&mut self, request: Vec<u8>, file: Option<OwnedFd>, done: Completer) {
        if matches!(self.phase, Phase::Configured | Phase::Starting | Phase::Started) || self.reading.is_some() {
            return done.complete(Err(Error::state("a session that has been set up cannot become a clone")));
        }
        if self.operations.first(Kind::Clone).is_some() {
            return done.complete(Err(Error::state("a session is being cloned already")));
        }
        if mem::replace(&mut self.has_session, true) {
            self.call_one_way::<method::FreeBuffers>();
        }
        self.operations.add(Kind::Clone, done, self.now + 2 * PATIENCE);
        let method = const { name_of::<method::CloneSession>() };
        self.calls.push(Call { method, args: request, tag: Some(Tag::Clone), fd: file });
    }

    fn cloned(&mut self, reply: &Reply<'_>) {
        let Some(id) = self.operations.first(Kind::Clone) else { return };
        let response = CloneSessionResponseReader::new(reply.body);
        let answer = if reply.success && response.success().unwrap_or(false) {
            self.phase = Phase::Ended;
            Ok(reply.body.to_vec())
        } else {
            self.has_session = false;
            let why = response.error().map(String::from_utf8_lossy).unwrap_or_else(|| "it cannot be cloned".into());
            Err(Error::session(&why))
        };
        self.operations.end(id, answer);
    }

    /// Makes a call with one answer, which is passed on.
    fn simple<M: Rpc>(&mut self, kind: Kind, request: Vec<u8>, done: Completer) {
        let id = self.operations.add(kind, done, self.now + PATIENCE);
        self.push::<M>(request, Tag::Of(id));
    }

    fn call<M: Rpc>(&mut self, request: &M::Request, tag: Tag) {
        self.push::<M>(request.encode(), tag);
    }

    /// Makes a call with an encoded request.
    fn push<M: Rpc>(&mut self, args: Vec<u8>, tag: Tag) {
        self.push_call(const { name_of::<M>() }, args, Some(tag));
    }

    /// Makes a call without content that nobody waits for.
    fn call_one_way<M: Rpc>(&mut self) {
        self.push_call(const { name_of::<M>() }, Vec::new(), None);
    }

    #[inline(never)]
    fn push_call(&mut self, method: &'static str, args: Vec<u8>, tag: Option<Tag>) {
        self.calls.push(Call { method, args, tag, fd: None });
    }
}

fn tell(listeners: &mut Vec<Listener>, result: &Result<(), Error>) {
    for listener in mem::take(listeners) {
        listener.tell(result.clone());
    }
}

/// Answers a command when there is no connection.
fn refuse(command: Command, error: Error) {
    match command {
        Command::SetUp(_, done)
        | Command::Start(done)
        | Command::Stop(done)
        | Command::Flush { done, .. }
        | Command::ChangeConfig { done, .. }
        | Command::Stats(done)
        | Command::ServiceState { done, .. }
        | Command::Capabilities(done)
        | Command::Clone { done, .. } => done.complete(Err(error)),
        Command::Read(sink, done) => Reading::new(sink, done).end(Err(error)),
        Command::OnStart(listener) | Command::OnStop(listener) | Command::OnError(listener) => {
            listener.tell(Err(error))
        }
    }
}
