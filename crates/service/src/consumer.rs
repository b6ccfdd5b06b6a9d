//! A consumer and the simple calls of its port (`docs/spec/wire-protocol.md §12, §14`).

use esatto_protozero::Owned;
use esatto_schema::{
    CloneSessionResponse, EnableTracingResponse, GetTraceStatsResponse, ObserveEventsRequestReader,
    ObserveEventsResponse, QueryCapabilitiesResponse, SaveTraceForBugreportResponse, TraceConfig,
    TracingServiceCapabilities, observable_events,
};

use crate::api::{CallId, ClientId, ConsumerCall, Peer};
use crate::context::Context;
use crate::ids::SessionId;
use crate::packet_check::put_varint;
use crate::service::Service;
use crate::session::{AfterFlush, FlushReason, InstanceState, State};

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
    observe_call: Option<CallId>,
    /// What it wants to know.
    observes: Mask,
    events: PendingEvents,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mask {
    instances: bool,
    all_started: bool,
}

/// Events of one task are sent in one message.
#[derive(Debug, Default)]
struct PendingEvents {
    changes: Vec<observable_events::DataSourceInstanceStateChange>,
    all_started: bool,
}

impl Consumer {
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            uid: peer.uid,
            session: None,
            enable_call: None,
            read_call: None,
            observe_call: None,
            observes: Mask::default(),
            events: PendingEvents::default(),
        }
    }
}

impl Service {
    /// Every call but EnableTracing.
    pub(crate) fn consumer_call(&mut self, call: CallId, method: ConsumerCall<'_>, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        let session = consumer.session;
        match method {
            ConsumerCall::EnableTracing(_) => cx.reject(call),
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
                // Upstream gives no answer without a session; there is no reason to keep anyone waiting.
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
            ConsumerCall::GetTraceStats => match session.and_then(|session| self.trace_stats(session)) {
                Some(stats) => {
                    let response = GetTraceStatsResponse { trace_stats: Some(Box::new(stats)), ..Default::default() };
                    cx.reply(call, response.encode());
                }
                None => cx.reject(call),
            },
            ConsumerCall::ObserveEvents(request) => self.observe_events(call, request, cx),
            ConsumerCall::QueryServiceState(request) => {
                self.query_service_state(call, request.sessions_only().unwrap_or(false), cx);
            }
            ConsumerCall::QueryCapabilities => {
                use observable_events::Type;
                let capabilities = TracingServiceCapabilities {
                    has_query_capabilities: Some(true),
                    observable_events: vec![Type::TYPE_DATA_SOURCES_INSTANCES, Type::TYPE_ALL_DATA_SOURCES_STARTED],
                    has_trace_config_output_path: Some(true),
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
            ConsumerCall::CloneSession(_) => {
                let error = Some("cloning sessions is not supported by this service".into());
                let response = CloneSessionResponse { success: Some(false), error, ..Default::default() };
                cx.reply(call, response.encode());
            }
        }
    }

    pub(crate) fn consumer_disconnected(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.remove(&client) else { return };
        if let Some(session) = consumer.session {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.consumer = None;
            }
            self.free(session, None, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer, if it waits.
    pub(crate) fn notify_disabled(&mut self, session: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        let error = session.end_error.take();
        let consumer = session.consumer.and_then(|client| self.consumers.get_mut(&client));
        if let Some(call) = consumer.and_then(|consumer| consumer.enable_call.take()) {
            reply_disabled(call, error, cx);
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
            let events = esatto_schema::ObservableEvents {
                instance_state_changes: events.changes,
                all_data_sources_started: events.all_started.then_some(true),
                ..Default::default()
            };
            let response = ObserveEventsResponse { events: Some(events), ..Default::default() };
            cx.reply_part(call, response.encode());
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
        let session = session.id;
        cx.reply(call, response);
        self.report_all_started(session, cx);
    }

    /// Registers for the end of the session attached before.
    pub(crate) fn wait_for_end(&mut self, call: CallId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        if let Some(earlier) = consumer.enable_call.replace(call) {
            cx.reject(earlier);
        }
        let session = consumer.session.and_then(|session| self.sessions.get(&session));
        // Upstream never answers when the end was before; there is no reason to keep anyone waiting.
        if session.is_some_and(|session| session.state == State::Disabled && session.file.is_none()) {
            consumer.enable_call = None;
            reply_disabled(call, None, cx);
        }
    }
}

/// Answers EnableTracing: tracing is over, or never began.
pub(crate) fn reply_disabled(call: CallId, error: Option<String>, cx: &mut Context<'_>) {
    let response = EnableTracingResponse { disabled: Some(true), error: error.map(Into::into), ..Default::default() };
    cx.reply(call, response.encode());
}
