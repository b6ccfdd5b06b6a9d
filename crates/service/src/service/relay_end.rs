//! The end of a relay: the log tells it, and so do the traces of its machine.

use super::Service;
use crate::api::ClientId;
use crate::context::Context;
use crate::session::state::State;
use crate::session::unread_events::Event;

impl Service {
    /// Tells the end of a relay. The programs of its machine lose the service with it, and nobody
    /// collects their last events.
    pub(super) fn relay_disconnected(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(relay) = self.machines.disconnect(client) else { return };
        let machine = relay.machine_in_words();
        cx.info(format!("a relay of {machine} disconnected"));
        for session in self.sessions.values_mut() {
            cx.charge(1);
            let records = matches!(session.state(), State::Started | State::WaitingForStop);
            if records && session.members.machines.contains(&relay.machine_id) {
                cx.warn(format!(
                    "{}: a relay of {machine} disconnected; the last events of its programs may be missing",
                    session.label()
                ));
                session.members.relay_ends += 1;
                session.record(Event::RelayDisconnected(relay.machine_id), false, cx.now);
            }
        }
    }
}
