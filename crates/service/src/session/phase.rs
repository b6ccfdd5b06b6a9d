//! Phases of a session: its states, with the data that each one needs.

use super::clone::CloneFacts;
use super::pending_resources::PendingResources;
use super::state::State;
use super::table::Sessions;
use crate::context::Context;
use crate::ids::SessionId;

/// State of a session, with the data that only this state has.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The config was accepted, and the owner prepares its files and priorities. Clients see
    /// `Disabled`.
    Opening(PendingResources),
    Configured,
    Started,
    WaitingForStop,
    Disabled,
    Cloned(CloneFacts),
}

impl Phase {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Opening(_) | Self::Disabled => State::Disabled,
            Self::Configured => State::Configured,
            Self::Started => State::Started,
            Self::WaitingForStop => State::WaitingForStop,
            Self::Cloned(_) => State::Cloned,
        }
    }
}

impl Sessions {
    /// Changes the phase of a session, and tells the sessions that watch others.
    pub(crate) fn enter(&mut self, id: SessionId, phase: Phase, cx: &mut Context<'_>) {
        let Some(session) = self.get_mut(id) else { return };
        session.phase = phase;
        self.announce(id, cx);
    }
}
