//! Freed sessions whose trace file is not complete yet (`docs/spec/service.md §18`).
//!
//! What a session has recorded may be as large as its buffers, and a step of the service must not
//! be. So a session that streams into a file, and is freed with much in its buffers, goes on
//! without a consumer until all of it is handed over: a batch for each that the owner has written.
//! Nobody sees the session any more, and no producer can write chunks to it.
//!
//! A drain still counts as a session of its user, and it holds its buffers. So it is given up if
//! its file takes nothing for [`MAX_DRAIN_STALL_MS`] (a pipe that nobody reads, a dead disk), or if
//! an exclusive session of root or of the service's own user ends it. Then its file stays
//! incomplete.

use crate::api::{CallId, TimerClock};
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::freed::FreedSession;
use crate::session::{ConsumerLink, Session};
use crate::timers::Purpose;

/// Milliseconds that a drain may last without a batch being written. Protects the buffers and the
/// number of sessions from files that take nothing.
const MAX_DRAIN_STALL_MS: u32 = 60_000;

impl Service {
    /// Whether a freed session still has something to write into its file. An owner that ends feeds
    /// [`Input::FileWritten`](crate::Input::FileWritten) until there is none.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        !self.sessions.freed.is_empty()
    }

    /// Keeps a session that was freed until its file is complete.
    pub(crate) fn begin_drain(&mut self, mut session: Session, notice: Option<CallId>, cx: &mut Context<'_>) {
        session.link = ConsumerLink::Absent;
        cx.info(format!("session {} is freed, its file is being completed", session.id.0));
        self.arm_drain_stall(session.id, cx);
        self.sessions.freed.insert(session.id, FreedSession { session, notice });
    }

    /// The file has to take a batch by the end of this time.
    fn arm_drain_stall(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.timers.cancel(id, Purpose::DrainStall, cx);
        self.timers.set(id, Purpose::DrainStall, TimerClock::Monotonic, MAX_DRAIN_STALL_MS, cx);
    }

    /// The file has taken nothing for too long.
    pub(crate) fn drain_stalled(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.abandon_drain(id, &format!("nothing could be written for {} s", MAX_DRAIN_STALL_MS / 1000), cx);
    }

    /// Gives up a drain: its buffers go, its file is closed as it is, and its consumer, if it still
    /// waits, learns why.
    pub(crate) fn abandon_drain(&mut self, id: SessionId, reason: &str, cx: &mut Context<'_>) {
        let Some(FreedSession { mut session, notice }) = self.sessions.freed.remove(&id) else { return };
        let error = format!("the trace file is incomplete: {reason}");
        cx.error(format!("session {}: {error}", id.0));
        session.end_error = Some(error);
        self.end_drain(session, notice, cx);
    }

    /// The owner wrote a batch of a freed session, or could not.
    pub(crate) fn continue_drain(&mut self, id: SessionId, result: Result<(), String>, cx: &mut Context<'_>) {
        let Some(FreedSession { mut session, notice }) = self.sessions.freed.remove(&id) else { return };
        if let Some(file) = session.file.open_mut() {
            file.writes = file.writes.saturating_sub(1);
        }
        if let Err(error) = &result {
            let error = format!("the end of the trace file cannot be written: {error}");
            cx.error(format!("session {}: {error}", id.0));
            session.end_error = Some(error);
        }
        // For the readers of sessions it is one, as long as this step takes.
        self.sessions.insert(session);
        let is_complete = result.is_err() || self.complete_file(id, cx);
        let Some(session) = self.sessions.remove(id) else { return };
        if !is_complete {
            self.arm_drain_stall(id, cx);
            self.sessions.freed.insert(id, FreedSession { session, notice });
            return;
        }
        self.end_drain(session, notice, cx);
    }

    fn end_drain(&mut self, session: Session, notice: Option<CallId>, cx: &mut Context<'_>) {
        self.timers.cancel(session.id, Purpose::DrainStall, cx);
        let is_there = |call: &CallId| self.consumers.get(call.client).is_some();
        let (notice, error) = (notice.filter(is_there), session.end_error.clone());
        self.drop_content(session, cx);
        if let Some(call) = notice {
            reply_disabled(call, error, cx);
        }
    }
}
