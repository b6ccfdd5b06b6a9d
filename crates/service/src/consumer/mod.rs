//! A consumer and the simple calls of its port (`docs/spec/wire-protocol.md §12, §14`).

use std::collections::VecDeque;

use esatto_protozero::Owned;
use esatto_schema::{
    EVENTS_LOST_FIELD, EnableTracingResponse, ObserveEventsRequestReader, ObserveEventsResponse,
    QueryCapabilitiesResponse, SaveTraceForBugreportResponse, TraceConfig, TracingServiceCapabilities,
    observable_events,
};

use crate::api::{CallId, ClientId, ConsumerCall, Output, Peer};
use crate::client_text::{MAX_NAME_BYTES, Name, cut_text};
use crate::context::Context;
use crate::encode::put;
use crate::encode::put_varint;
use crate::ids::{InstanceId, SessionId};
use crate::service::Service;
use crate::service::state_query::Query;
use crate::session::instances::InstanceState;
use crate::session::triggers::Received;
use crate::session::{AfterFlush, FlushReason};

/// Events that wait for an observer. Those that do not fit are lost: the next message says how many
/// (`EVENTS_LOST_FIELD`), and the log says that there are some.
const MAX_PENDING_EVENTS: usize = 4096;

/// Bytes of the names in events that wait for an observer; beyond it the same happens.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// Bytes of events that are sent to an observer before it has to take some of them.
const SENT_EVENT_BYTES: usize = 256 << 10;

/// Bytes of events in one message.
const MESSAGE_BYTES: usize = 64 << 10;

/// A client of the consumer port.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) uid: i32,
    pub(crate) session: Option<SessionId>,
    /// EnableTracing calls wait for the end of tracing.
    pub(crate) enable_call: Option<CallId>,
    /// An EnableTracing call whose session was detached. Only a later EnableTracing call ends it.
    pub(crate) detached_call: Option<CallId>,
    pub(crate) read_call: Option<CallId>,
    pub(crate) clone_call: Option<CallId>,
    observe_call: Option<CallId>,
    /// What it wants to know.
    observes: Mask,
    events: PendingEvents,
    /// QueryServiceState calls that are not answered in full yet, oldest first.
    pub(crate) queries: VecDeque<Query>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mask {
    instances: bool,
    all_started: bool,
    clone_triggers: bool,
}

/// Events of one task are sent in one message, if it is not too long.
#[derive(Debug, Default)]
struct PendingEvents {
    all_started: bool,
    queue: VecDeque<Event>,
    /// Bytes of names in the queue.
    bytes: usize,
    lost: u64,
    /// Since the observer was ready last.
    sent_bytes: usize,
    /// No more are sent until the observer is ready.
    is_awaited: bool,
}

#[derive(Debug)]
enum Event {
    /// A data source of a producer is in this state now.
    Change { producer: Option<Name>, data_source: Name, state: observable_events::DataSourceInstanceState },
    /// Somebody wants a clone of this session.
    CloneHit(SessionId, Received),
}

impl Event {
    fn bytes(&self) -> usize {
        match self {
            Self::Change { producer, data_source, .. } => {
                producer.as_ref().map_or(0, |name| name.len()) + data_source.len()
            }
            Self::CloneHit(_, hit) => hit.name.len() + hit.producer_name.len(),
        }
    }
}

impl PendingEvents {
    fn add(&mut self, event: Event) {
        let bytes = self.bytes + event.bytes();
        if self.queue.len() >= MAX_PENDING_EVENTS || bytes > MAX_PENDING_BYTES {
            self.lost += 1;
        } else {
            self.bytes = bytes;
            self.queue.push_back(event);
        }
    }

    fn is_empty(&self) -> bool {
        !self.all_started && self.queue.is_empty() && self.lost == 0
    }

    /// The next message: state changes, as many as fit, and at most one hit, for which there is no
    /// more room in it.
    fn next_message(&mut self) -> Option<esatto_schema::ObservableEvents> {
        if self.is_empty() {
            return None;
        }
        let all_started = core::mem::take(&mut self.all_started).then_some(true);
        let mut message =
            esatto_schema::ObservableEvents { all_data_sources_started: all_started, ..Default::default() };
        if self.lost > 0 {
            put(&mut message.unknown_fields, EVENTS_LOST_FIELD, core::mem::take(&mut self.lost));
        }
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES && message.clone_trigger_hit.is_none() {
            let Some(event) = self.queue.pop_front() else { break };
            bytes += event.bytes() + 16;
            self.bytes -= event.bytes();
            match event {
                Event::Change { producer, data_source, state } => {
                    message.instance_state_changes.push(observable_events::DataSourceInstanceStateChange {
                        producer_name: producer.map(|name| name.to_vec().into()),
                        data_source_name: Some(data_source.to_vec().into()),
                        state: Some(state),
                        ..Default::default()
                    });
                }
                Event::CloneHit(session, hit) => {
                    message.clone_trigger_hit = Some(Box::new(observable_events::CloneTriggerHit {
                        tracing_session_id: Some(session.0 as i64),
                        trigger_name: Some(hit.name.to_vec().into()),
                        producer_name: Some(hit.producer_name.to_vec().into()),
                        producer_uid: Some(hit.producer_uid as u32),
                        boot_time_ns: Some(hit.boottime_ns),
                        trigger_delay_ms: Some(hit.stop_delay_ms),
                        ..Default::default()
                    }));
                }
            }
        }
        Some(message)
    }
}

impl Consumer {
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            uid: peer.uid,
            session: None,
            enable_call: None,
            detached_call: None,
            read_call: None,
            clone_call: None,
            observe_call: None,
            observes: Mask::default(),
            events: PendingEvents::default(),
            queries: VecDeque::new(),
        }
    }
}

impl Service {
    /// Every call but EnableTracing and CloneSession.
    pub(crate) fn consumer_call(&mut self, call: CallId, method: ConsumerCall<'_>, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        let session = consumer.session;
        match method {
            ConsumerCall::EnableTracing(_) | ConsumerCall::CloneSession(_) => cx.reject(call),
            ConsumerCall::DisableTracing => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.disable(session, false, None, cx);
                }
            }
            ConsumerCall::StartTracing => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.start(session, cx);
                }
            }
            ConsumerCall::FreeBuffers => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.free_for_consumer(session, cx);
                }
            }
            ConsumerCall::ReadBuffers => {
                if let Some(earlier) = consumer.read_call.replace(call) {
                    cx.reject(earlier);
                }
                self.continue_read(call.client, cx);
            }
            ConsumerCall::Flush(request) => {
                // Upstream never answers without a session; there is no reason to keep anyone waiting.
                let Some(session) = session else { return cx.reject(call) };
                let reason = FlushReason::Consumer(request.flags().unwrap_or(0));
                let timeout_ms = request.timeout_ms().unwrap_or(0);
                self.flush(session, timeout_ms, reason, AfterFlush::Reply(call), cx);
            }
            ConsumerCall::ChangeTraceConfig(request) => {
                cx.reply_empty(call);
                let config = request.trace_config().map(|config| TraceConfig::decode(config.as_bytes()));
                if let (Some(session), Some(Ok(config))) = (session, config) {
                    self.change_config(session, config, cx);
                }
            }
            ConsumerCall::Detach(request) => self.detach(call, request.key().unwrap_or_default(), cx),
            ConsumerCall::Attach(request) => self.attach(call, request.key().unwrap_or_default(), cx),
            ConsumerCall::GetTraceStats => self.get_trace_stats(call, session, cx),
            ConsumerCall::ObserveEvents(request) => self.observe_events(call, request, cx),
            ConsumerCall::QueryServiceState(request) => {
                self.query_service_state(call, request.sessions_only().unwrap_or(false), cx);
            }
            ConsumerCall::QueryCapabilities => {
                use observable_events::Type;
                let capabilities = TracingServiceCapabilities {
                    has_query_capabilities: Some(true),
                    observable_events: vec![
                        Type::TYPE_DATA_SOURCES_INSTANCES,
                        Type::TYPE_ALL_DATA_SOURCES_STARTED,
                        Type::TYPE_CLONE_TRIGGER_HIT,
                    ],
                    has_trace_config_output_path: Some(true),
                    has_clone_session: Some(true),
                    ..Default::default()
                };
                let response = QueryCapabilitiesResponse { capabilities: Some(capabilities), ..Default::default() };
                cx.reply(call, response.encode());
            }
            ConsumerCall::SaveTraceForBugreport => {
                let msg = Some("not supported, clone the session instead".into());
                let response = SaveTraceForBugreportResponse { success: Some(false), msg, ..Default::default() };
                cx.reply(call, response.encode());
            }
        }
    }

    pub(crate) fn consumer_disconnected(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.remove(&client) else { return };
        self.abandon_clones_for(client, cx);
        if let Some(session) = consumer.session {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.consumer = None;
            }
            self.free_for_consumer(session, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer, if it waits, and the call that made
    /// a clone.
    pub(crate) fn notify_disabled(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.clone.is_some() {
            let error = session.end_error.clone();
            return self.clone_is_complete(id, error, cx);
        }
        if self.answer_end(id, cx) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.consumer.is_none() && session.detach_key.is_some() && session.end_error.is_none() {
            // What a detached session recorded is in its file, or lost. Only an error waits for a
            // consumer to be told.
            self.free(id, None, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer; false if none waits. The session
    /// keeps its error, for a consumer that attaches later.
    pub(crate) fn answer_end(&mut self, id: SessionId, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.sessions.get(&id) else { return false };
        let consumer = session.consumer.and_then(|client| self.consumers.get_mut(&client));
        let Some(call) = consumer.and_then(|consumer| consumer.enable_call.take()) else { return false };
        reply_disabled(call, session.end_error.clone(), cx);
        true
    }

    fn observe_events(&mut self, call: CallId, request: ObserveEventsRequestReader<'_>, cx: &mut Context<'_>) {
        use observable_events::Type;
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return };
        if let Some(earlier) = consumer.observe_call.replace(call) {
            cx.reply_empty(earlier);
        }
        let wants = |wanted: Type| request.events_to_observe().any(|event| event == wanted);
        consumer.observes = Mask {
            instances: wants(Type::TYPE_DATA_SOURCES_INSTANCES),
            all_started: wants(Type::TYPE_ALL_DATA_SOURCES_STARTED),
            clone_triggers: wants(Type::TYPE_CLONE_TRIGGER_HIT),
        };
        if request.events_to_observe().next().is_none() {
            consumer.observe_call = None;
            cx.reply_empty(call);
        }
        let observes = consumer.observes;
        let Some(session) = consumer.session.and_then(|session| self.sessions.get(&session)) else { return };
        let id = session.id;
        let instances = if observes.instances { session.instances.ids() } else { Vec::new() };
        if observes.all_started && session.all_started_reported {
            self.notify_all_started(call.client);
        }
        cx.charge(instances.len());
        for instance in instances {
            self.notify_instance_state(call.client, id, instance);
        }
    }

    pub(crate) fn notify_all_started(&mut self, client: ClientId) {
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        if consumer.observes.all_started && consumer.observe_call.is_some() {
            consumer.events.all_started = true;
            self.to_notify.insert(client);
        }
    }

    /// Tells the consumer of a session that a snapshot is wanted.
    pub(crate) fn notify_clone_trigger(&mut self, session: SessionId, hit: Received) {
        let Some(client) = self.sessions.get(&session).and_then(|session| session.consumer) else { return };
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        if !consumer.observes.clone_triggers || consumer.observe_call.is_none() {
            return;
        }
        consumer.events.add(Event::CloneHit(session, hit));
        self.to_notify.insert(client);
    }

    /// Tells a consumer the state of an instance as it is now.
    pub(crate) fn notify_instance_state(&mut self, client: ClientId, session: SessionId, id: InstanceId) {
        use observable_events::DataSourceInstanceState;
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        if !consumer.observes.instances || consumer.observe_call.is_none() {
            return;
        }
        let instance = self.sessions.get(&session).and_then(|session| session.instances.get(id));
        let Some(instance) = instance else { return };
        let state = match instance.state {
            InstanceState::Configured | InstanceState::Stopped => {
                DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STOPPED
            }
            InstanceState::Started => DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STARTED,
            InstanceState::Starting | InstanceState::Stopping => return,
        };
        let producer = self.producers.get(instance.producer).map(|producer| Name::clone(&producer.name));
        consumer.events.add(Event::Change { producer, data_source: Name::clone(&instance.name), state });
        self.to_notify.insert(client);
    }

    /// Sends the events of this task.
    #[cold]
    pub(crate) fn send_events(&mut self, cx: &mut Context<'_>) {
        for client in core::mem::take(&mut self.to_notify) {
            self.send_events_to(client, cx);
        }
    }

    /// An observer has taken what it was sent.
    pub(crate) fn consumer_is_ready(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&client).filter(|consumer| consumer.events.is_awaited) else {
            return;
        };
        consumer.events.is_awaited = false;
        consumer.events.sent_bytes = 0;
        self.send_events_to(client, cx);
    }

    fn send_events_to(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        let uid = consumer.uid;
        let events = &mut consumer.events;
        let Some(call) = consumer.observe_call else {
            return *events = PendingEvents { is_awaited: events.is_awaited, ..PendingEvents::default() };
        };
        while !events.is_awaited {
            let lost = events.lost;
            if lost > 0 {
                cx.warn(format!("a consumer of uid {uid} does not take its events: {lost} are lost"));
            }
            let Some(message) = events.next_message() else { break };
            let body = ObserveEventsResponse { events: Some(message), ..Default::default() }.encode();
            events.sent_bytes += body.len();
            cx.reply_part(call, body);
            if events.sent_bytes > SENT_EVENT_BYTES {
                events.is_awaited = true;
                cx.push(Output::AwaitReady(client));
            }
        }
    }

    fn detach(&mut self, call: CallId, key: &[u8], cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        let uid = consumer.uid;
        let is_taken = self
            .sessions
            .values()
            .any(|session| session.consumer_uid == uid && session.detach_key.as_deref() == Some(key));
        let session = consumer.session.and_then(|session| self.sessions.get_mut(&session));
        let Some(session) = session.filter(|_| !key.is_empty() && key.len() <= MAX_NAME_BYTES && !is_taken) else {
            return cx.reject(call);
        };
        session.detach_key = Some(key.to_vec());
        session.consumer = None;
        consumer.session = None;
        if let Some(earlier) = consumer.enable_call.take().and_then(|call| consumer.detached_call.replace(call)) {
            cx.reject(earlier);
        }
        if let Some(read) = consumer.read_call.take() {
            cx.reply_empty(read);
        }
        cx.reply_empty(call);
    }

    fn attach(&mut self, call: CallId, key: &[u8], cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        let uid = consumer.uid;
        let detached = self.sessions.values_mut().find(|session| {
            session.consumer.is_none() && session.consumer_uid == uid && session.detach_key.as_deref() == Some(key)
        });
        let Some(session) = detached.filter(|_| consumer.session.is_none()) else { return cx.reject(call) };
        session.detach_key = None;
        session.consumer = Some(call.client);
        consumer.session = Some(session.id);
        // AttachResponse { trace_config = 1 }
        let mut response = vec![1 << 3 | 2];
        put_varint(&mut response, session.config_bytes.len() as u64);
        response.extend_from_slice(&session.config_bytes);
        let are_started = session.all_started_reported;
        cx.reply(call, response);
        if are_started {
            self.notify_all_started(call.client);
        }
    }

    /// Registers for the end of the session attached before.
    pub(crate) fn wait_for_end(&mut self, call: CallId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        for earlier in [consumer.enable_call.replace(call), consumer.detached_call.take()].into_iter().flatten() {
            cx.reject(earlier);
        }
        let session = consumer.session.and_then(|session| self.sessions.get(&session));
        // Upstream never answers when the end was before; there is no reason to keep anyone waiting.
        let error = match session {
            None => Some("this consumer has no session".to_owned()),
            Some(session) if session.is_over() => session.end_error.clone(),
            Some(_) => return,
        };
        consumer.enable_call = None;
        reply_disabled(call, error, cx);
    }
}

/// Answers EnableTracing: tracing is over, or never began.
pub(crate) fn reply_disabled(call: CallId, error: Option<String>, cx: &mut Context<'_>) {
    let error = error.map(cut_text);
    let response = EnableTracingResponse { disabled: Some(true), error: error.map(Into::into), ..Default::default() };
    cx.reply(call, response.encode());
}
