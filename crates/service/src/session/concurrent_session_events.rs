//! Events about other sessions in the trace of a session (`docs/spec/service.md §25`).

use esatto_protozero::Owned;
use esatto_schema::{ConcurrentSessionEvent, concurrent_session_event};

use super::table::Sessions;
use crate::client_text::Name;
use crate::context::Context;
use crate::ids::SessionId;
use crate::session::Session;
use crate::session::state::State;

/// Events that a session keeps between two reads. It drops later ones, and the statistics count
/// them.
const MAX_CONCURRENT_SESSION_EVENTS: usize = 4096;

impl Sessions {
    /// Tells the sessions that watch others that a session has entered its state.
    pub(crate) fn announce(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.get_mut(id) else { return };
        session.state_since_ns = cx.now.boottime_ns;
        let event: Name = event_of(session).into();
        for observer in self.values_mut().filter(|observer| observer.id != id) {
            if !matches!(observer.state(), State::Disabled | State::Cloned) {
                observer.tell(cx.now.boottime_ns, &event);
            }
        }
    }

    /// Tells a new session the state of each other session.
    pub(crate) fn tell_of_others(&mut self, id: SessionId) {
        let others: Vec<(u64, Name)> = self
            .values()
            .filter(|other| other.id != id)
            .map(|other| (other.state_since_ns, event_of(other).into()))
            .collect();
        let Some(session) = self.get_mut(id) else { return };
        for (since_ns, event) in others {
            session.tell(since_ns, &event);
        }
    }
}

impl Session {
    fn tell(&mut self, boottime_ns: u64, event: &Name) {
        if !self.builtin(|builtin| builtin.enable_concurrent_session_events) {
            return;
        }
        if self.unread.concurrent.len() < MAX_CONCURRENT_SESSION_EVENTS {
            self.unread.concurrent.push((boottime_ns, Name::clone(event)));
        } else {
            self.unread.lost.session_events += 1;
        }
    }
}

/// Encodes the event of a session.
fn event_of(session: &Session) -> Vec<u8> {
    use concurrent_session_event::State as EventState;
    let state = match session.state() {
        State::Disabled => EventState::STATE_DISABLED,
        State::Configured => EventState::STATE_CONFIGURED,
        State::Started => EventState::STATE_STARTED,
        State::WaitingForStop => EventState::STATE_DISABLING_WAITING_STOP_ACKS,
        State::Cloned => EventState::STATE_CLONED_READ_ONLY,
    };
    let name = session.unique_name();
    ConcurrentSessionEvent {
        state: Some(state),
        session_name: (!name.is_empty()).then(|| name.to_vec().into()),
        session_id: Some(session.id.0),
        consumer_uid: Some(session.consumer_uid),
        num_data_sources: Some(u32::try_from(session.instances.len()).unwrap_or(u32::MAX)),
        ..ConcurrentSessionEvent::default()
    }
    .encode()
}
