//! Producers that disconnect before a session has reached them, or without data for it.
//!
//! A program that lives for some milliseconds may end before it has handled the command to start,
//! or even before it has offered its data sources. The trace, the log and the consumer learn this.

use std::sync::Arc;

use esatto_map::LargeMap;

use super::Service;
use crate::client_text::Name;
use crate::consumer::departed::Missed;
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::session::instances::InstanceState;
use crate::session::state::State;

/// Data source that programs on an SDK offer.
const TRACK_EVENT: &[u8] = b"track_event";

impl Service {
    /// Returns the running sessions that want data of a producer that disconnects, and have none.
    /// Tells their traces if they have not reached it.
    pub(super) fn note_missed(&mut self, id: ProducerId, cx: &mut Context<'_>) -> Vec<(SessionId, Missed)> {
        let none: Name = Arc::from(&[][..]);
        let from = (id, Arc::clone(&none), SessionId(0), InstanceId(0));
        // For each session: whether the producer has started an instance, and the name of the first
        // one.
        let mut started: LargeMap<SessionId, (bool, Name)> = LargeMap::new();
        for (_, name, session, instance) in
            self.sessions.instances_of.range(from..).take_while(|(producer, ..)| *producer == id)
        {
            cx.charge(1);
            let state = self.sessions.get(*session).and_then(|session| session.instances.get(*instance));
            let is_started = state
                .is_some_and(|instance| !matches!(instance.state, InstanceState::Configured | InstanceState::Starting));
            let of_session = started.get_or_insert_with(*session, || (false, Arc::clone(name)));
            of_session.0 |= is_started;
        }
        let Self { sessions, producers, config, .. } = self;
        let Some(producer) = producers.get(id) else { return Vec::new() };
        let mut missed = Vec::new();
        for session in sessions.values_mut().filter(|session| session.state() == State::Started) {
            cx.charge(1 + session.buffers.len());
            if session.buffers.iter().any(|buffer| producer.written_buffers.contains(buffer)) {
                continue;
            }
            let is_new = session.started_boottime_ns.is_some_and(|started_ns| producer.connected_ns >= started_ns);
            let (what, name) = match started.get(&session.id) {
                Some((false, name)) => (Missed::Unreached, name),
                Some((true, name)) if is_new => (Missed::WithoutData, name),
                Some(_) => continue,
                // It would have offered this data source. Programs that only tell a trigger do not.
                None if is_new
                    && producer.is_idle
                    && !session.wanted_entries(TRACK_EVENT, producer, &config.system, cx).is_empty() =>
                {
                    (Missed::Unreached, &none)
                }
                None => continue,
            };
            if what == Missed::Unreached {
                session.record_unreached(&producer.name, name, cx.now);
            }
            missed.push((session.id, what));
        }
        missed
    }
}
