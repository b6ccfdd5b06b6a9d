//! Names of the data sources that are slow to start, to flush or to stop, for the trace and for the
//! log (`docs/spec/service.md §9, §10, §12`).

use esatto_map::LargeMap;

use crate::client_text::{Name, quoted};
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::service::Service;
use crate::session::instances::{Instance, InstanceState};
use crate::session::state::State;
use crate::session::unread_events::Event;

/// Milliseconds after which the trace names the data sources that did not start.
pub(super) const SLOW_START_MS: u32 = 20_000;

/// Data sources named in a "slow" event.
const MAX_SLOW_DATA_SOURCES: usize = 32;

impl Service {
    /// Names the data sources that are not running 20 s after the start.
    pub(crate) fn record_slow_start(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let slow = self.names_of(session_id, |instance| instance.state != InstanceState::Started, cx);
        if let Some(session) = self.sessions.get_mut(session_id) {
            if !session.instances.is_start_reported && session.state() == State::Started {
                session.record(Event::SlowStartingDataSources(slow), false, cx.now);
            }
        }
    }

    /// Returns producer and data source names of some instances of a session.
    pub(super) fn names_of(
        &self,
        session: SessionId,
        wanted: impl Fn(&Instance) -> bool,
        cx: &mut Context<'_>,
    ) -> Vec<(Name, Name)> {
        let Some(session) = self.sessions.get(session) else { return Vec::new() };
        cx.charge(session.instances.len());
        let instances = session.instances.iter().filter(|instance| wanted(instance)).take(MAX_SLOW_DATA_SOURCES);
        let producer_name = |id| self.producers.get(id).map_or_else(|| Name::from(&[][..]), |found| found.name.clone());
        instances.map(|instance| (producer_name(instance.producer), instance.name.clone())).collect()
    }

    /// Describes the producers of some instances of a session for the log.
    pub(super) fn in_words(
        &self,
        session: SessionId,
        wanted: impl Fn(&Instance) -> bool,
        cx: &mut Context<'_>,
    ) -> String {
        let Some(session) = self.sessions.get(session) else { return String::new() };
        cx.charge(session.instances.len());
        let mut words: LargeMap<ProducerId, String> = LargeMap::new();
        for instance in session.instances.iter().filter(|instance| wanted(instance)).take(MAX_SLOW_DATA_SOURCES) {
            let of_producer = words.get_or_insert_with(instance.producer, || {
                self.producers.get(instance.producer).map_or_else(String::new, |found| {
                    let pid = found.peer.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
                    let (name, machine) = (quoted(&found.name), found.machine_in_words());
                    format!("producer {name}{machine} (uid {}{pid}): ", found.peer.uid)
                })
            });
            if !of_producer.ends_with(": ") {
                of_producer.push_str(" and ");
            }
            of_producer.push_str(&quoted(&instance.name));
        }
        if words.is_empty() {
            return "producers that have no data source to name".to_owned();
        }
        words.values().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}
