//! Events that name the data sources that are slow to start or to flush
//! (`docs/spec/service.md §9, §12`).

use crate::client_text::Name;
use crate::context::Context;
use crate::ids::SessionId;
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
}
