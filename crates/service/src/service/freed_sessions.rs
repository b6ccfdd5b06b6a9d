//! Freed sessions whose trace file is not complete yet (`docs/spec/service.md §18`).
//!
//! A session may have recorded as much as its buffers hold, and a step of the service must be
//! short. So a freed session that streams into a file continues without a consumer. The service
//! makes a batch whenever the owner has written one, until the owner has written all data. Then the
//! log gets the session's end. Clients do not see the session any more, and no producer can write
//! chunks to it.
//!
//! This drain still counts as a session of its user, and it holds its buffers. The service gives it
//! up if its file accepts nothing for [`MAX_DRAIN_STALL_MS`] (an unread pipe, a dead disk). It also
//! gives it up if an exclusive session of root or of the service's own user ends it. Then its file
//! stays incomplete.

use crate::api::{CallId, TimerClock};
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::freed::FreedSession;
use crate::session::trace_file::FileEnd;
use crate::session::{ConsumerLink, Session};
use crate::timers::Purpose;

/// Milliseconds that a drain may last without writing a batch. Protects the buffers and the number
/// of sessions from files that accept no data.
const MAX_DRAIN_STALL_MS: u32 = 60_000;

impl Service {
    /// Tells whether a freed session still has something to write into its file. An owner that ends
    /// feeds [`Input::FileWritten`](crate::Input::FileWritten) until there is none.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        !self.sessions.freed.is_empty()
    }

    /// Keeps a freed session until its file is complete.
    pub(crate) fn begin_drain(&mut self, mut session: Session, notice: Option<CallId>, cx: &mut Context<'_>) {
        session.link = ConsumerLink::Absent;
        cx.debug(format!("{} is freed, its file is being completed", session.label()));
        self.arm_drain_stall(session.id, cx);
        self.sessions.freed.insert(session.id, FreedSession { session, notice });
    }

    /// Sets the time by which the file has to accept a batch.
    fn arm_drain_stall(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.timers.cancel(id, Purpose::DrainStall, cx);
        self.timers.set(id, Purpose::DrainStall, TimerClock::Monotonic, MAX_DRAIN_STALL_MS, cx);
    }

    /// Gives up a drain whose file has accepted nothing for too long.
    pub(crate) fn drain_stalled(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.abandon_drain(id, &format!("nothing could be written for {} s", MAX_DRAIN_STALL_MS / 1000), cx);
    }

    /// Gives up all drains, because the owner ends.
    pub(crate) fn give_up_drains(&mut self, cx: &mut Context<'_>) {
        let drains: Vec<SessionId> = self.sessions.freed.keys().copied().collect();
        for id in drains {
            self.abandon_drain(id, "the service ended before all of it was written", cx);
        }
    }

    /// Gives up a drain: removes its buffers, closes its file as it is, and tells the reason to its
    /// consumer, if it still waits.
    pub(crate) fn abandon_drain(&mut self, id: SessionId, reason: &str, cx: &mut Context<'_>) {
        let Some(FreedSession { mut session, notice }) = self.sessions.freed.remove(&id) else { return };
        let error = format!("the trace file is incomplete: {reason}");
        cx.error(format!("{}: {error}", session.label()));
        session.end_error = Some(error);
        if let Some(file) = session.file.open_mut() {
            file.end = FileEnd::Failed;
        }
        self.end_drain(session, notice, cx);
    }

    /// Handles the result of writing a batch of a freed session.
    pub(crate) fn continue_drain(&mut self, id: SessionId, result: Result<(), String>, cx: &mut Context<'_>) {
        let Some(FreedSession { mut session, notice }) = self.sessions.freed.remove(&id) else { return };
        if let Some(file) = session.file.open_mut() {
            file.writes = file.writes.saturating_sub(1);
            if result.is_err() {
                file.end = FileEnd::Failed;
            }
        }
        if let Err(error) = &result {
            let error = format!("the end of the trace file cannot be written: {error}");
            cx.error(format!("{}: {error}", session.label()));
            session.end_error = Some(error);
        }
        // During this step the functions that read sessions find it in the table.
        self.sessions.insert(session);
        let is_complete = result.is_err() || self.complete_file(id, cx);
        let Some(session) = self.sessions.remove(id) else { return };
        self.forget_departed_producers(cx);
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
        if session.file.open().is_some() {
            // The file is given up, so no function has told the end before.
            self.activity.files_failed += 1;
            if !session.is_clone {
                cx.info(session.end_in_words(&self.buffers));
            }
        }
        self.drop_content(session, cx);
        if let Some(call) = notice {
            reply_disabled(call, error, cx);
        }
    }
}
