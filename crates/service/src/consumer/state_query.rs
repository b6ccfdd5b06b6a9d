//! Answers to QueryServiceState (`docs/spec/service.md §24`).

use esatto_protozero::Owned;
use esatto_schema::tracing_service_state::TracingSession;
use esatto_schema::{CONSUMER_PID_FIELD, DETACH_KEY_FIELD, LOCKDOWN_FIELD, TracingServiceState};

use super::Consumer;
use super::departed::DepartedProducers;
use super::producer_entries::{field, told_data_source, told_producer};
use crate::api::{CallId, ClientId, Output};
use crate::context::Context;
use crate::encode::{put, put_message};
use crate::frame_limits::FULL_BODY_BYTES;
use crate::ids::{ProducerId, SessionId};
use crate::producer::Producers;
use crate::producer::data_sources::RegistrationId;
use crate::session::Session;
use crate::session::state::State;
use crate::session::table::Sessions;

/// Bytes of a state that the service sends before the consumer must take some of them.
const QUERY_BATCH_BYTES: usize = 256 << 10;

/// QueryServiceState calls of a consumer that wait for their answer. The service rejects further
/// ones.
const MAX_QUERIES: usize = 16;

/// The parts of the service that a query tells of.
pub(crate) struct ServiceState<'a> {
    pub(crate) version: &'a str,
    /// The user that the service runs as.
    pub(crate) uid: i32,
    pub(crate) producers: &'a Producers,
    pub(crate) sessions: &'a Sessions,
    pub(crate) departed: &'a DepartedProducers,
}

impl ServiceState<'_> {
    /// Tells of the service and its sessions, but not of producers and data sources.
    fn tell_sessions(&self, uid: i32, parts: &mut Parts, cx: &mut Context<'_>) {
        let started = self.sessions.values().filter(|session| session.state() == State::Started).count();
        let count = |len: usize| Some(i32::try_from(len).unwrap_or(i32::MAX));
        let head = TracingServiceState {
            num_sessions: count(self.sessions.len()),
            num_sessions_started: count(started),
            tracing_service_version: Some(self.version.into()),
            supports_tracing_sessions: Some(true),
            ..TracingServiceState::default()
        };
        parts.add(&head.encode(), cx);
        if let Some(told) = self.producers.lockdown.told(self.uid) {
            parts.add_message(LOCKDOWN_FIELD.into(), &told, cx);
        }
        for session in self.sessions.values().filter(|session| uid == 0 || session.consumer_uid == uid) {
            cx.charge(1);
            parts.add_message(6, &tracing_session(session).encode(), cx);
        }
    }
}

impl Consumer {
    /// Answers QueryServiceState in parts that each fit into a frame, as fast as the consumer takes
    /// them.
    pub(crate) fn query_service_state(
        &mut self,
        call: CallId,
        sessions_only: bool,
        state: &ServiceState<'_>,
        cx: &mut Context<'_>,
    ) {
        if self.queries.len() >= MAX_QUERIES {
            return cx.reject(call);
        }
        self.queries.push_back(Query { call, sessions_only, at: At::Head, part: Vec::new() });
        if self.queries.len() == 1 {
            self.continue_queries(call.client, state, cx);
        }
    }

    /// Sends the next parts of the answers that are not complete.
    pub(crate) fn continue_queries(&mut self, client: ClientId, state: &ServiceState<'_>, cx: &mut Context<'_>) {
        while let Some(query) = self.queries.front_mut() {
            if !query.send(self.uid, self.session, state, cx) {
                return cx.push(Output::AwaitReady(client));
            }
            self.queries.pop_front();
        }
    }
}

/// A QueryServiceState call without a complete answer.
#[derive(Debug)]
pub(crate) struct Query {
    call: CallId,
    sessions_only: bool,
    at: At,
    /// Encoded state that was not sent yet.
    part: Vec<u8>,
}

impl Query {
    /// Sends a batch of the answer. Returns true if that was all.
    fn send(&mut self, uid: i32, session: Option<SessionId>, state: &ServiceState<'_>, cx: &mut Context<'_>) -> bool {
        let query = self;
        let mut parts = Parts { call: query.call, current: core::mem::take(&mut query.part), sent_bytes: 0 };
        if query.at == At::Head {
            state.tell_sessions(uid, &mut parts, cx);
            query.at = At::Producer(0);
        }
        while let At::Producer(from) = query.at {
            let rest = state.producers.iter_from(ProducerId(from)).filter(|_| !query.sessions_only);
            for producer in rest {
                if parts.sent_bytes > QUERY_BATCH_BYTES {
                    query.at = At::Producer(producer.id.0);
                    query.part = parts.current;
                    return false;
                }
                cx.charge(1);
                parts.add_message(1, &told_producer(producer).encode(), cx);
            }
            query.at = At::Registration(RegistrationId(0));
        }
        if let At::Registration(from) = query.at {
            for (id, registration) in state.producers.data_sources.iter_from(from).filter(|_| !query.sessions_only) {
                if parts.sent_bytes > QUERY_BATCH_BYTES {
                    query.at = At::Registration(id);
                    query.part = parts.current;
                    return false;
                }
                cx.charge(1);
                parts.add_message(2, &told_data_source(registration), cx);
            }
            let since = session.and_then(|id| state.sessions.get(id)?.departed_since).filter(|_| !query.sessions_only);
            let Some(since) = since else {
                cx.reply(query.call, parts.body());
                return true;
            };
            parts.add(&state.departed.told_forgotten(since, cx), cx);
            query.at = At::Departed(since);
        }
        let (At::Departed(from), Some(session)) = (query.at, session) else {
            // The session was freed meanwhile.
            cx.reply(query.call, parts.body());
            return true;
        };
        for (number, producer) in state.departed.iter_from(from) {
            if parts.sent_bytes > QUERY_BATCH_BYTES {
                query.at = At::Departed(number);
                query.part = parts.current;
                return false;
            }
            for field in producer.fields_for(session) {
                cx.charge(1);
                parts.add(&field, cx);
            }
        }
        cx.reply(query.call, parts.body());
        true
    }
}

/// The part of the state that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Head,
    /// Producers from this number on.
    Producer(u16),
    /// Data sources from this one on.
    Registration(RegistrationId),
    /// Departed producers from this one on.
    Departed(u64),
}

/// A state that several replies of limited size carry.
struct Parts {
    call: CallId,
    current: Vec<u8>,
    sent_bytes: usize,
}

impl Parts {
    fn add(&mut self, field: &[u8], cx: &mut Context<'_>) {
        // A field that is too long for a full part gets its own reply. It fits into a frame,
        // because the service refuses everything that would make it longer.
        if !self.current.is_empty() && self.current.len() + field.len() > FULL_BODY_BYTES - 8 {
            let body = self.body();
            cx.reply_part(self.call, body);
        }
        self.current.extend_from_slice(field);
    }

    fn add_message(&mut self, id: u64, message: &[u8], cx: &mut Context<'_>) {
        self.add(&field(id, message), cx);
    }

    /// Takes the state so far as a QueryServiceStateResponse { service_state = 1 }.
    fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.current.len() + 8);
        put_message(&mut body, 1, &self.current);
        self.current.clear();
        self.sent_bytes += body.len();
        body
    }
}

fn tracing_session(session: &Session) -> TracingSession {
    let config = &session.config;
    let mut unknown_fields = Vec::new();
    if let Some(pid) = session.consumer_pid.and_then(|pid| u64::try_from(pid).ok()) {
        put(&mut unknown_fields, CONSUMER_PID_FIELD, pid);
    }
    if let Some(key) = session.detach_key() {
        put_message(&mut unknown_fields, DETACH_KEY_FIELD.into(), key);
    }
    TracingSession {
        id: Some(session.id.0),
        consumer_uid: Some(session.consumer_uid),
        state: Some(session.state().name().into()),
        unique_session_name: config.unique_session_name.clone(),
        buffer_size_kb: config.buffers.iter().map(|buffer| buffer.size_kb.unwrap_or(0)).collect(),
        duration_ms: Some(config.duration_ms.unwrap_or(0)),
        num_data_sources: Some(u32::try_from(session.instances.len()).unwrap_or(u32::MAX)),
        start_realtime_ns: session.started_realtime_ns.map(|ns| ns as i64),
        bugreport_score: config.bugreport_score,
        bugreport_filename: config.bugreport_filename.clone(),
        is_started: Some(session.state() == State::Started),
        unknown_fields,
    }
}
