//! The end of a producer that records the machine: the log tells it, and so do the traces that it
//! recorded for.

use std::sync::Arc;

use super::Service;
use crate::client_text::{Name, quoted};
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::session::instances::InstanceState;
use crate::session::unread_events::Event;

/// Beginnings of the names of data sources that record the machine or its devices. Daemons offer
/// them, and no session expects such a daemon to end. Programs that record themselves end at any
/// time.
const OF_MACHINES: [&[u8]; 4] = [b"android.", b"gpu.", b"linux.", b"perf."];
/// Data sources of a producer that one event names.
const MAX_ENDED_NAMES: usize = 32;

impl Service {
    /// Tells the end of a producer whose data sources of the machine recorded for sessions.
    pub(super) fn tell_ended_data_sources(&mut self, id: ProducerId, cx: &mut Context<'_>) {
        let Some(producer) = self.producers.get(id) else { return };
        let first: Name = Arc::from(&[][..]);
        let all = self.sessions.instances_of.range((id, first, SessionId(0), InstanceId(0))..);
        let all = all.take_while(|(of, ..)| *of == id);
        let mut ended: Vec<(SessionId, InstanceId)> = Vec::new();
        for (_, name, session, instance) in all {
            cx.charge(1);
            if OF_MACHINES.iter().any(|begin| name.starts_with(begin)) {
                ended.push((*session, *instance));
            }
        }
        esatto_map::sort(&mut ended);
        let mut rest = &ended[..];
        while let Some(&(session_id, _)) = rest.first() {
            let (of_session, others) = rest.split_at(rest.iter().take_while(|(id, _)| *id == session_id).count());
            rest = others;
            let Some(session) = self.sessions.get_mut(session_id) else { continue };
            let records = |id: &InstanceId| {
                let instance = session.instances.get(*id)?;
                let is_recording = matches!(instance.state, InstanceState::Starting | InstanceState::Started);
                is_recording.then(|| Name::clone(&instance.name))
            };
            let mut names: Vec<Name> = of_session.iter().filter_map(|(_, id)| records(id)).collect();
            esatto_map::sort(&mut names);
            names.dedup();
            if names.is_empty() {
                continue;
            }
            let number = names.len();
            names.truncate(MAX_ENDED_NAMES);
            let listed: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            cx.warn(format!(
                "{}: producer {} ended while it recorded {}; their later data is missing",
                session.label(),
                producer.display_name(),
                listed.join(", ")
            ));
            session.members.ended_sources += number as u64;
            let names = names.into_iter().map(|name| (Name::clone(&producer.name), name)).collect();
            session.record(Event::EndedDataSources(names), false, cx.now);
        }
    }
}
