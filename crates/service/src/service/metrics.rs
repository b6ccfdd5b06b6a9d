//! Numbers about the service that its owner may publish.

use crate::service::Service;
use crate::session::activity::Recorded;
use crate::session::state::State;

/// Numbers about a [`Service`]. The first six are about the moment, the others only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Sessions that record.
    pub sessions_running: usize,
    /// Other sessions: not started, stopping, ended and not freed, clones.
    pub sessions_idle: usize,
    /// Connected producers.
    pub producers: usize,
    /// Data sources that they offer.
    pub data_sources: usize,
    /// Bytes of all central buffers that sessions have asked for.
    pub buffer_bytes: u64,
    /// Only producers of the service's own user are served (`TraceConfig.lockdown_mode`).
    pub is_locked_down: bool,
    /// Sessions that were started.
    pub sessions_started: u64,
    /// Sessions that were refused.
    pub sessions_refused: u64,
    /// Connections of producers that lockdown mode refused.
    pub lockdown_refusals: u64,
    /// Flushes that a producer did not acknowledge in time.
    pub flushes_failed: u64,
    /// Stops of sessions that a producer did not acknowledge in time.
    pub stops_failed: u64,
    /// Trace files that could not be written to their end.
    pub files_failed: u64,
    /// Amounts that all sessions recorded and lost, without clones.
    pub recorded: Recorded,
}

impl Service {
    /// Returns the numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        let mut recorded = self.activity.recorded;
        let drains = self.sessions.freed.values().map(|drain| &drain.session);
        for session in self.sessions.values().chain(drains).filter(|session| !session.is_clone) {
            recorded = recorded.plus(session.recorded(&self.buffers));
        }
        let sessions_running = self.sessions.values().filter(|session| session.state() == State::Started).count();
        Metrics {
            sessions_running,
            sessions_idle: self.sessions.len() - sessions_running,
            producers: self.producers.len(),
            data_sources: self.producers.data_sources.len(),
            buffer_bytes: self.buffer_bytes(),
            is_locked_down: self.producers.lockdown.is_on(),
            sessions_started: self.activity.sessions_started,
            sessions_refused: self.activity.sessions_refused,
            lockdown_refusals: self.producers.lockdown.refused_in_all,
            flushes_failed: self.activity.flushes_failed,
            stops_failed: self.activity.stops_failed,
            files_failed: self.activity.files_failed,
            recorded,
        }
    }
}
