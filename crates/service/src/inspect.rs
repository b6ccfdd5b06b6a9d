//! What a service holds, for those who check that it holds nothing too much.

use crate::api::ClientId;
use crate::service::Service;

/// How many of everything there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the service's own fields")]
pub struct Holdings {
    pub connections: usize,
    pub producers: usize,
    pub registrations: usize,
    pub consumers: usize,
    pub sessions: usize,
    pub buffers: usize,
    pub files: usize,
    pub timers: usize,
    pub to_notify: usize,
    pub pending_clones: usize,
}

/// A session as the service sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its number.
    pub id: u64,
    /// To whom it belongs; nobody while detached.
    pub consumer: Option<ClientId>,
    /// The global numbers of its buffers.
    pub buffers: Vec<u16>,
}

impl Service {
    /// Counts everything.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            connections: self.connections.len(),
            producers: self.producers.len(),
            registrations: self.registry.len(),
            consumers: self.consumers.len(),
            sessions: self.sessions.len(),
            buffers: self.buffers.len(),
            files: self.files.len(),
            timers: self.timer_count(),
            to_notify: self.to_notify.len(),
            pending_clones: self.pending_clones.len(),
        }
    }

    /// The sessions, oldest first.
    pub fn session_views(&self) -> Vec<SessionView> {
        let view = |session: &crate::session::Session| SessionView {
            id: session.id.0,
            consumer: session.consumer,
            buffers: session.buffers.iter().map(|buffer| buffer.0).collect(),
        };
        self.sessions.values().map(view).collect()
    }

    /// Changes whenever a session comes or goes.
    pub fn session_stamp(&self) -> (usize, u64) {
        (self.sessions.len(), self.last.session)
    }

    /// Checks that the books of every buffer balance.
    ///
    /// # Panics
    ///
    /// If they do not.
    pub fn assert_consistent(&self) {
        self.buffers.values().for_each(crate::buffer::CentralBuffer::assert_consistent);
    }
}
