//! Events of a session that its consumer observes (`docs/spec/wire-protocol.md §14`).

use std::collections::VecDeque;

use esatto_protozero::Owned;
use esatto_schema::{EVENTS_LOST_FIELD, ObserveEventsRequestReader, ObserveEventsResponse, observable_events};

use super::{Consumer, Consumers};
use crate::api::{CallId, ClientId, Output};
use crate::client_text::Name;
use crate::context::Context;
use crate::encode::put;
use crate::ids::SessionId;
use crate::session::instances::InstanceState;
use crate::session::triggers::Received;

/// Events that wait for an observer. Those that do not fit are lost. The next message tells their
/// number (`EVENTS_LOST_FIELD`), and the log says that events are lost.
const MAX_PENDING_EVENTS: usize = 4096;

/// Bytes of the names in events that wait for an observer. Events beyond it are lost in the same
/// way.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// Bytes of events that the service sends to an observer before it must take some of them.
const SENT_EVENT_BYTES: usize = 256 << 10;

/// Bytes of events in one message.
const MESSAGE_BYTES: usize = 64 << 10;

/// The ObserveEvents call of a consumer, and the events that wait for it.
#[derive(Debug, Default)]
pub(super) struct Observer {
    call: Option<CallId>,
    observes: Mask,
    events: PendingEvents,
}

/// Kinds of events that an observer asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mask {
    pub(crate) instances: bool,
    pub(crate) all_started: bool,
    clone_triggers: bool,
}

/// Events that wait for the observer. One message carries the events of one call of `handle`, if it
/// is not too long.
#[derive(Debug, Default)]
struct PendingEvents {
    all_started: bool,
    queue: VecDeque<Event>,
    /// Bytes of names in the queue.
    bytes: usize,
    lost: u64,
    /// Bytes sent since the observer was ready last.
    sent_bytes: usize,
    /// The service waits until the observer is ready.
    is_awaited: bool,
}

#[derive(Debug)]
enum Event {
    /// A data source of a producer has this state now.
    Change { producer: Option<Name>, data_source: Name, state: observable_events::DataSourceInstanceState },
    /// A trigger asks for a clone of this session.
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

    /// Takes the next message: as many state changes as fit, and at most one clone trigger, because
    /// the message has room for one.
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
                    #[expect(clippy::cast_sign_loss, reason = "the field has the bits of the user id")]
                    let producer_uid = hit.producer_uid as u32;
                    message.clone_trigger_hit = Some(Box::new(observable_events::CloneTriggerHit {
                        tracing_session_id: Some(session.0 as i64),
                        trigger_name: Some(hit.name.to_vec().into()),
                        producer_name: Some(hit.producer_name.to_vec().into()),
                        producer_uid: Some(producer_uid),
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
    /// Begins to observe, or ends it if the request names no events. Returns the kinds of events.
    pub(crate) fn observe(
        &mut self,
        call: CallId,
        request: ObserveEventsRequestReader<'_>,
        cx: &mut Context<'_>,
    ) -> Mask {
        use observable_events::Type;
        if let Some(earlier) = self.observer.call.replace(call) {
            cx.reply_empty(earlier);
        }
        let wants = |wanted: Type| request.events_to_observe().any(|event| event == wanted);
        self.observer.observes = Mask {
            instances: wants(Type::TYPE_DATA_SOURCES_INSTANCES),
            all_started: wants(Type::TYPE_ALL_DATA_SOURCES_STARTED),
            clone_triggers: wants(Type::TYPE_CLONE_TRIGGER_HIT),
        };
        if request.events_to_observe().next().is_none() {
            self.observer.call = None;
            cx.reply_empty(call);
        }
        self.observer.observes
    }
}

impl Consumers {
    /// Tells a consumer that all data sources of its session have started.
    pub(crate) fn notify_all_started(&mut self, client: ClientId) {
        let Some(Consumer { observer, .. }) = self.by_client.get_mut(&client) else { return };
        if observer.observes.all_started && observer.call.is_some() {
            observer.events.all_started = true;
            self.to_notify.insert(client);
        }
    }

    /// Tells the consumer of a session that a trigger asks for a clone.
    pub(crate) fn notify_clone_trigger(&mut self, client: ClientId, session: SessionId, hit: Received) {
        let Some(Consumer { observer, .. }) = self.by_client.get_mut(&client) else { return };
        if observer.observes.clone_triggers && observer.call.is_some() {
            observer.events.add(Event::CloneHit(session, hit));
            self.to_notify.insert(client);
        }
    }

    /// Tells whether a consumer observes the states of instances.
    pub(crate) fn observes_instances(&self, client: ClientId) -> bool {
        let observer = self.by_client.get(&client).map(|consumer| &consumer.observer);
        observer.is_some_and(|observer| observer.observes.instances && observer.call.is_some())
    }

    /// Tells a consumer the state of an instance.
    pub(crate) fn notify_instance_state(
        &mut self,
        client: ClientId,
        producer: Option<Name>,
        data_source: Name,
        state: InstanceState,
    ) {
        use observable_events::DataSourceInstanceState;
        if !self.observes_instances(client) {
            return;
        }
        let Some(Consumer { observer, .. }) = self.by_client.get_mut(&client) else { return };
        let state = match state {
            InstanceState::Configured | InstanceState::Stopped => {
                DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STOPPED
            }
            InstanceState::Started => DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STARTED,
            InstanceState::Starting | InstanceState::Stopping => return,
        };
        observer.events.add(Event::Change { producer, data_source, state });
        self.to_notify.insert(client);
    }

    /// Tells whether events wait to be sent.
    pub(crate) fn has_events(&self) -> bool {
        !self.to_notify.is_empty()
    }

    pub(crate) fn with_events(&self) -> usize {
        self.to_notify.len()
    }

    /// Sends the events of one call of `handle`.
    #[cold]
    pub(crate) fn send_events(&mut self, cx: &mut Context<'_>) {
        for client in core::mem::take(&mut self.to_notify) {
            self.send_events_to(client, cx);
        }
    }

    /// Sends more events to an observer that has taken the earlier ones.
    pub(crate) fn is_ready(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.by_client.get_mut(&client).filter(|found| found.observer.events.is_awaited) else {
            return;
        };
        consumer.observer.events.is_awaited = false;
        consumer.observer.events.sent_bytes = 0;
        self.send_events_to(client, cx);
    }

    fn send_events_to(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.by_client.get_mut(&client) else { return };
        let uid = consumer.uid;
        let Observer { call, events, .. } = &mut consumer.observer;
        let Some(call) = *call else {
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
}
