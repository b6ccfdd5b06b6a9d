//! Freed sessions whose trace file is not complete yet (`docs/spec/service.md §18`).
//!
//! What a session has recorded may be as large as its buffers, and a step of the service must not
//! be. So a session that streams into a file, and is freed with much in its buffers, goes on without
//! a consumer until all of it is handed over: a batch for each that the owner has written. Nobody
//! sees the session any more, and no producer can write chunks to it.

use crate::api::CallId;
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::Session;

/// A freed session.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) session: Session,
    /// The EnableTracing call that is answered when the file is complete.
    notice: Option<CallId>,
}

impl Service {
    /// Whether a freed session still has something to write into its file. An owner that ends feeds
    /// [`Input::FileWritten`](crate::Input::FileWritten) until there is none.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        !self.drains.is_empty()
    }

    /// Keeps a session that was freed until its file is complete.
    pub(crate) fn begin_drain(&mut self, mut session: Session, notice: Option<CallId>, cx: &mut Context<'_>) {
        session.consumer = None;
        session.detach_key = None;
        session.clone = None;
        cx.info(format!("session {} is freed, its file is being completed", session.id.0));
        self.drains.insert(session.id, Drain { session, notice });
    }

    /// The owner wrote a batch of a freed session, or could not.
    pub(crate) fn continue_drain(&mut self, id: SessionId, result: Result<(), String>, cx: &mut Context<'_>) {
        let Some(Drain { mut session, notice }) = self.drains.remove(&id) else { return };
        if let Some(file) = &mut session.file {
            file.writes = file.writes.saturating_sub(1);
        }
        if let Err(error) = &result {
            let error = format!("the end of the trace file cannot be written: {error}");
            cx.error(format!("session {}: {error}", id.0));
            session.end_error = Some(error);
        }
        // For the readers of sessions it is one, as long as this step takes.
        self.sessions.insert(id, session);
        let is_complete = result.is_err() || self.complete_file(id, cx);
        let Some(session) = self.sessions.remove(&id) else { return };
        if !is_complete {
            self.drains.insert(id, Drain { session, notice });
            return;
        }
        let is_there = |call: &CallId| self.consumers.contains_key(&call.client);
        let (notice, error) = (notice.filter(is_there), session.end_error.clone());
        self.drop_content(session, cx);
        if let Some(call) = notice {
            reply_disabled(call, error, cx);
        }
    }
}
