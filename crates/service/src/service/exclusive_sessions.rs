//! Exclusive sessions, which end other sessions (`docs/spec/service.md §25`). The rules are in
//! [`admission`](crate::session::admission).

use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::Session;

impl Service {
    /// Ends the sessions that an exclusive session displaces.
    ///
    /// Those that are still opening and will end this one stay. A user's exclusive session ends
    /// only sessions of the same user. Root's and that of the service's own user end all sessions,
    /// also freed ones that still complete their files.
    pub(super) fn displace_others(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(id) else { return };
        let (uid, priority) = (session.consumer_uid, session.config.exclusive_prio.unwrap_or(0));
        if priority == 0 {
            return;
        }
        let is_ended = |other: &&Session| other.id != id && self.sessions.gives_way(other, uid, priority);
        let others: Vec<SessionId> = self.sessions.values().filter(is_ended).map(|other| other.id).collect();
        let reason = format!("ended by a session with exclusive_prio {priority}");
        // This comes before others are freed, because those complete their files.
        let drains = self.sessions.freed.values().filter(|drain| self.sessions.drain_gives_way(drain, uid, priority));
        for drain in drains.map(|drain| drain.session.id).collect::<Vec<_>>() {
            self.abandon_drain(drain, &reason, cx);
        }
        for other in others {
            self.free(other, Some(reason.clone()), cx);
        }
    }
}
