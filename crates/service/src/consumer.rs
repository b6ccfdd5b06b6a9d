//! A consumer and the simple calls of its port (`docs/spec/wire-protocol.md §12, §14`).

use esatto_protozero::Owned;
use esatto_schema::{
    EnableTracingResponse, ObserveEventsRequestReader, ObserveEventsResponse, QueryCapabilitiesResponse,
    SaveTraceForBugreportResponse, TraceConfig, TracingServiceCapabilities, observable_events,
};

use crate::api::{CallId, ClientId, ConsumerCall, Peer};
use crate::context::Context;
use crate::ids::SessionId;
use crate::packet_check::put_varint;
use crate::service::Service;
use crate::session::{AfterFlush, FlushReason, InstanceState};
use crate::triggers::Received;

/// Instance state changes that wait to be sent together.
const MAX_PENDING_CHANGES: usize = 4096;

/// A client of the consumer port.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) uid: i32,
    pub(crate) session: Option<SessionId>,
    /// EnableTracing calls wait for the end of tracing.
    pub(crate) enable_call: Option<CallId>,
    pub(crate) read_call: Option<CallId>,
    pub(crate) clone_call: Option<CallId>,
    observe_call: Option<CallId>,
    /// What it wants to know.
    observes: Mask,
    events: PendingEvents,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mask {
    instances: bool,
    all_started: bool,
    clone_triggers: bool,
}

/// Events of one task are sent in one message.
#[derive(Debug, Default)]
struct PendingEvents {
    changes: Vec<observable_events::DataSourceInstanceStateChange>,
    all_started: bool,
    clone_hits: Vec<observable_events::CloneTriggerHit>,
}

impl Consumer {
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            uid: peer.uid,
            session: None,
            enable_call: None,
            read_call: None,
            clone_call: None,
            observe_call: None,
            observes: Mask::default(),
            events: PendingEvents::default(),
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
                    self.free(session, None, cx);
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
            self.free(session, None, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer, if it waits, or the call that made a clone.
    pub(crate) fn notify_disabled(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.clone.is_some() {
            let error = session.end_error.take();
            return self.clone_is_complete(id, error, cx);
        }
        let consumer = session.consumer.and_then(|client| self.consumers.get_mut(&client));
        if let Some(call) = consumer.and_then(|consumer| consumer.enable_call.take()) {
            reply_disabled(call, session.end_error.take(), cx);
        } else if session.consumer.is_none() && session.detach_key.is_some() && session.end_error.is_none() {
            // What a detached session recorded is in its file, or lost. Only an error waits for somebody to be told.
            self.free(id, None, cx);
        }
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
        let (id, instances) = (session.id, session.instances.len());
        if observes.all_started && session.all_started_reported {
            self.notify_all_started(call.client);
        }
        if observes.instances {
            for index in 0..instances {
                self.notify_instance_state(call.client, id, index);
            }
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
    pub(crate) fn notify_clone_trigger(&mut self, session: SessionId, hit: &Received) {
        let Some(client) = self.sessions.get(&session).and_then(|session| session.consumer) else { return };
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        if !consumer.observes.clone_triggers
            || consumer.observe_call.is_none()
            || consumer.events.clone_hits.len() >= MAX_PENDING_CHANGES
        {
            return;
        }
        consumer.events.clone_hits.push(observable_events::CloneTriggerHit {
            tracing_session_id: Some(session.0 as i64),
            trigger_name: Some(hit.name.clone().into()),
            producer_name: Some(hit.producer_name.clone().into()),
            producer_uid: Some(hit.producer_uid as u32),
            boot_time_ns: Some(hit.boottime_ns),
            trigger_delay_ms: Some(hit.stop_delay_ms),
            ..Default::default()
        });
        self.to_notify.insert(client);
    }

    /// Tells a consumer the state of an instance as it is now.
    pub(crate) fn notify_instance_state(&mut self, client: ClientId, session: SessionId, index: usize) {
        use observable_events::DataSourceInstanceState;
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        if !consumer.observes.instances
            || consumer.observe_call.is_none()
            || consumer.events.changes.len() >= MAX_PENDING_CHANGES
        {
            return;
        }
        let instance = self.sessions.get(&session).and_then(|session| session.instances.get(index));
        let Some(instance) = instance else { return };
        let state = match instance.state {
            InstanceState::Configured | InstanceState::Stopped => {
                DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STOPPED
            }
            InstanceState::Started => DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STARTED,
            InstanceState::Starting | InstanceState::Stopping => return,
        };
        let producer_name = self.producers.get(&instance.producer).map(|producer| producer.name.clone().into());
        consumer.events.changes.push(observable_events::DataSourceInstanceStateChange {
            producer_name,
            data_source_name: Some(instance.name.clone().into()),
            state: Some(state),
            ..Default::default()
        });
        self.to_notify.insert(client);
    }

    /// Sends the events of this task.
    #[cold]
    pub(crate) fn send_events(&mut self, cx: &mut Context<'_>) {
        for client in core::mem::take(&mut self.to_notify) {
            let Some(consumer) = self.consumers.get_mut(&client) else { continue };
            let events = core::mem::take(&mut consumer.events);
            let Some(call) = consumer.observe_call else { continue };
            let mut hits = events.clone_hits.into_iter();
            let mut message = esatto_schema::ObservableEvents {
                instance_state_changes: events.changes,
                all_data_sources_started: events.all_started.then_some(true),
                clone_trigger_hit: hits.next().map(Box::new),
                ..Default::default()
            };
            loop {
                let response = ObserveEventsResponse { events: Some(message), ..Default::default() };
                cx.reply_part(call, response.encode());
                // There is room for one hit in a message, and each wants its own snapshot.
                let Some(hit) = hits.next() else { break };
                let hit = Some(Box::new(hit));
                message = esatto_schema::ObservableEvents { clone_trigger_hit: hit, ..Default::default() };
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
        let Some(session) = session.filter(|_| !key.is_empty() && !is_taken) else { return cx.reject(call) };
        session.detach_key = Some(key.to_vec());
        session.consumer = None;
        consumer.session = None;
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
        if let Some(earlier) = consumer.enable_call.replace(call) {
            cx.reject(earlier);
        }
        let session = consumer.session.and_then(|session| self.sessions.get_mut(&session));
        // Upstream never answers when the end was before; there is no reason to keep anyone waiting.
        let error = match session {
            None => Some("this consumer has no session".to_owned()),
            Some(session) if session.is_over() => session.end_error.take(),
            Some(_) => return,
        };
        consumer.enable_call = None;
        reply_disabled(call, error, cx);
    }
}

/// Answers EnableTracing: tracing is over, or never began.
pub(crate) fn reply_disabled(call: CallId, error: Option<String>, cx: &mut Context<'_>) {
    let response = EnableTracingResponse { disabled: Some(true), error: error.map(Into::into), ..Default::default() };
    cx.reply(call, response.encode());
}
