//! Phases of a session: its states, with the data that each one needs.

use super::clone::CloneFacts;
use super::pending_resources::PendingResources;
use super::state::State;

/// State of a session, with the data that only this state has.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The config was accepted, and the owner prepares what it needs. Clients see `Disabled`.
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
