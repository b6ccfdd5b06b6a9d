//! Calls of the consumer port (`docs/spec/wire-protocol.md §12, §14`).

use esatto_protozero::Owned;
use esatto_schema::{
    ObserveEventsRequestReader, QueryCapabilitiesResponse, SaveTraceForBugreportResponse, TraceConfig,
    TracingServiceCapabilities, observable_events,
};

use crate::api::{CallId, ClientId, ConsumerCall};
use crate::client_text::{MAX_NAME_BYTES, Name};
use crate::consumer::reply_disabled;
use crate::consumer::state_query::ServiceState;
use crate::context::Context;
use crate::encode::{put_message, put_varint};
use crate::frame_limits::FULL_BODY_BYTES;
use crate::ids::{InstanceId, SessionId};
use crate::service::Service;
use crate::service::session_stats::wants_session_stats;
use crate::session::flush::{AfterFlush, FlushReason};
use crate::session::{ConsumerLink, Session};

/// The user who may take over the sessions of all users.
const ROOT: i32 = 0;

impl Service {
    /// Handles every call but EnableTracing and CloneSession.
    pub(crate) fn consumer_call(&mut self, call: CallId, method: ConsumerCall<'_>, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        let session = consumer.session;
        match method {
            ConsumerCall::EnableTracing(_) | ConsumerCall::CloneSession(_) => cx.reject(call),
            ConsumerCall::DisableTracing(_) => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.disable(session, false, None, cx);
                }
            }
            ConsumerCall::StartTracing(_) => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.start(session, cx);
                }
            }
            ConsumerCall::FreeBuffers(_) => {
                cx.reply_empty(call);
                if let Some(session) = session {
                    self.free_for_consumer(session, cx);
                }
            }
            ConsumerCall::ReadBuffers(_) => {
                if let Some(earlier) = consumer.read_call.replace(call) {
                    cx.reject(earlier);
                }
                self.continue_read(call.client, cx);
            }
            ConsumerCall::Flush(request) => {
                // Upstream never answers without a session, but the caller has no reason to wait.
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
            ConsumerCall::GetTraceStats(_) => self.get_trace_stats(call, session, cx),
            ConsumerCall::ObserveEvents(request) => self.observe_events(call, request, cx),
            ConsumerCall::QueryServiceState(request) if wants_session_stats(request) => {
                self.tell_session_stats(call, cx);
            }
            ConsumerCall::QueryServiceState(request) => {
                let state = ServiceState {
                    version: &self.config.version,
                    uid: self.config.uid,
                    producers: &self.producers,
                    sessions: &self.sessions,
                    departed: &self.departed,
                };
                consumer.query_service_state(call, request.sessions_only().unwrap_or(false), &state, cx);
            }
            ConsumerCall::QueryCapabilities(_) => {
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
            ConsumerCall::SaveTraceForBugreport(_) => {
                let msg = Some("not supported, clone the session instead".into());
                let response = SaveTraceForBugreportResponse { success: Some(false), msg, ..Default::default() };
                cx.reply(call, response.encode());
            }
        }
    }

    /// Answers GetTraceStats with the histograms of as many writers as fit into a frame.
    fn get_trace_stats(&mut self, call: CallId, session: Option<SessionId>, cx: &mut Context<'_>) {
        let totals = self.totals();
        let Some(session) = session.and_then(|session| self.sessions.get_mut(session)) else { return cx.reject(call) };
        let filter_stats = session.reading.filter.as_ref().map(|filter| Box::new(filter.stats()));
        let stats = session.encode_stats(filter_stats, FULL_BODY_BYTES - 8, &totals, &self.buffers, &mut self.work);
        // GetTraceStatsResponse { trace_stats = 1 }
        let mut reply = Vec::with_capacity(stats.len() + 8);
        put_message(&mut reply, 1, &stats);
        cx.reply(call, reply);
    }

    fn observe_events(&mut self, call: CallId, request: ObserveEventsRequestReader<'_>, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return };
        let observes = consumer.observe(call, request, cx);
        let Some(session) = consumer.session.and_then(|session| self.sessions.get(session)) else { return };
        let id = session.id;
        let instances = if observes.instances { session.instances.ids() } else { Vec::new() };
        if observes.all_started && session.instances.is_start_reported {
            self.consumers.notify_all_started(call.client);
        }
        cx.charge(instances.len());
        for instance in instances {
            self.notify_instance_state(call.client, id, instance);
        }
    }

    /// Tells a consumer the state of an instance.
    pub(crate) fn notify_instance_state(&mut self, client: ClientId, session: SessionId, id: InstanceId) {
        if !self.consumers.observes_instances(client) {
            return;
        }
        let instance = self.sessions.get(session).and_then(|session| session.instances.get(id));
        let Some(instance) = instance else { return };
        let producer = self.producers.get(instance.producer).map(|producer| Name::clone(&producer.name));
        self.consumers.notify_instance_state(client, producer, Name::clone(&instance.name), instance.state);
    }

    pub(crate) fn consumer_disconnected(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.remove(client) else { return };
        self.abandon_clones_for(client, cx);
        if let Some(session) = consumer.session {
            if let Some(session) = self.sessions.get_mut(session) {
                session.link = ConsumerLink::Absent;
            }
            self.free_for_consumer(session, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer, if there is one, and the call that
    /// made a clone.
    pub(crate) fn notify_disabled(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.clone_facts().is_some() {
            let error = session.end_error.clone();
            return self.clone_is_complete(id, error, cx);
        }
        if self.answer_end(id, cx) {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.is_detached() && session.end_error.is_none() {
            // The data of a detached session are in its file, or lost. Only an error remains until
            // a consumer learns it.
            self.free(id, None, cx);
        }
    }

    /// Answers the EnableTracing call of a session's consumer. Returns false if there is none. The
    /// session keeps its error for a consumer that attaches later.
    pub(crate) fn answer_end(&mut self, id: SessionId, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.sessions.get(id) else { return false };
        let consumer = session.consumer().and_then(|client| self.consumers.get_mut(client));
        let Some(call) = consumer.and_then(|consumer| consumer.enable_call.take()) else { return false };
        reply_disabled(call, session.end_error.clone(), cx);
        true
    }

    fn detach(&mut self, call: CallId, key: &[u8], cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        let uid = consumer.uid;
        let is_taken =
            self.sessions.values().any(|session| session.consumer_uid == uid && session.is_detached_with(key));
        let session = consumer.session.and_then(|session| self.sessions.get_mut(session));
        let Some(session) = session.filter(|_| !key.is_empty() && key.len() <= MAX_NAME_BYTES && !is_taken) else {
            return cx.reject(call);
        };
        session.link = ConsumerLink::Detached { key: key.to_vec() };
        session.consumer_pid = None;
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
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        let uid = consumer.uid;
        let find = |is_of_user: &dyn Fn(&Session) -> bool| {
            let mut found =
                self.sessions.values().filter(|session| is_of_user(session) && session.is_detached_with(key));
            // Users may have the same key.
            found.next().filter(|_| found.next().is_none()).map(|session| session.id)
        };
        let own = find(&|session| session.consumer_uid == uid);
        let detached = own.or_else(|| if uid == ROOT { find(&|_| true) } else { None });
        let detached = detached.and_then(|id| self.sessions.get_mut(id));
        let Some(session) = detached.filter(|_| consumer.session.is_none()) else { return cx.reject(call) };
        session.link = ConsumerLink::Attached(call.client);
        session.consumer_pid = consumer.pid;
        consumer.session = Some(session.id);
        // AttachResponse { trace_config = 1 }
        let mut response = vec![1 << 3 | 2];
        put_varint(&mut response, session.config_bytes.len() as u64);
        response.extend_from_slice(&session.config_bytes);
        let are_started = session.instances.is_start_reported;
        cx.reply(call, response);
        if are_started {
            self.consumers.notify_all_started(call.client);
        }
    }

    /// Lets a call wait for the end of the session that its consumer has attached.
    pub(crate) fn wait_for_end(&mut self, call: CallId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        for earlier in [consumer.enable_call.replace(call), consumer.detached_call.take()].into_iter().flatten() {
            cx.reject(earlier);
        }
        let session = consumer.session.and_then(|session| self.sessions.get(session));
        // Upstream never answers if the end was before, but the caller has no reason to wait.
        let error = match session {
            None => Some("this consumer has no session".to_owned()),
            Some(session) if session.is_over() => session.end_error.clone(),
            Some(_) => return,
        };
        consumer.enable_call = None;
        reply_disabled(call, error, cx);
    }
}
