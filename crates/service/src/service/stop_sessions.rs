//! The end of the service itself: it flushes and stops all sessions, so that no data of producers
//! are lost (`docs/spec/service.md §10`).

use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::Session;
use crate::session::flush::{AfterFlush, FlushReason};
use crate::session::state::State;
use crate::timers::Purpose;

impl Service {
    /// Tells whether all sessions are over, their files complete, and their data read by consumers
    /// that are still connected. An owner that ends may wait for this.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_unread = |session: &Session| session.consumer().is_some() && !session.file.is_used();
        !self.is_draining() && self.sessions.values().all(|session| session.is_over() && !is_unread(session))
    }

    /// Flushes and stops all sessions, and refuses new ones from now on.
    pub(crate) fn stop_sessions(&mut self, timeout_ms: u32, cx: &mut Context<'_>) {
        self.stops_within_ms = Some(timeout_ms);
        let ids: Vec<SessionId> = self.sessions.values().map(|session| session.id).collect();
        for id in ids {
            cx.charge(1);
            let Some(session) = self.sessions.get(id) else { continue };
            match session.state() {
                State::Started => {
                    let timeout_ms = timeout_ms.min(session.flush_timeout_ms());
                    self.flush(id, timeout_ms, FlushReason::TraceStop, AfterFlush::StopSession, cx);
                }
                State::WaitingForStop => self.timers.bring_forward(id, Purpose::StopTimeout, timeout_ms, cx),
                _ => self.disable(id, false, None, cx),
            }
        }
    }

    /// Checks that a session can begin.
    ///
    /// # Errors
    ///
    /// A text for the consumer: the service is about to end.
    pub(super) fn check_not_stopping(&self) -> Result<(), String> {
        match self.stops_within_ms {
            None => Ok(()),
            Some(_) => Err("the service is being stopped".to_owned()),
        }
    }
}
