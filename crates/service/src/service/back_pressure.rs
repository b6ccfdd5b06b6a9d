//! Back pressure from trace files to producers: no chunk overwrites data that are not written yet.
//!
//! A session can be faster than its file. A service inside a program can make the program wait for
//! the disk, because the program itself has asked for the session. It takes no commits while the
//! buffers of such a session are half full of unread data and a write pass is under way. Chunks
//! then stay in shared memory, and threads that need one wait. The service writes early: as soon as
//! a quarter of a buffer is unread, it does not wait for the end of the write period.
//!
//! Commits continue at the end of each pass, whatever it has found. So data that cannot be read yet
//! (the rest of a packet is missing) never stop the commit that has the rest. The other half of the
//! buffer is there for them.

use esatto_schema::TraceConfig;
use esatto_schema::data_source_config::BufferExhaustedPolicy;

use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::Session;
use crate::session::trace_file::FileState;

/// The service writes when this part of a buffer is unread: one of so many.
const WRITE_PARTS: usize = 4;
/// Commits wait when this part of a buffer is unread.
const FULL_PARTS: usize = 2;

/// Smallest buffer of such a session. Smaller ones are enlarged: a quarter of the buffer has to
/// hold a whole commit, and the chunks that cannot be read yet of many threads.
pub(super) const MIN_KEPT_KB: u32 = 1024;

/// Returns whether a data source of the config stalls rather than losing data.
pub(super) fn is_wanted(config: &TraceConfig) -> bool {
    let policies = config.data_sources.iter().filter_map(|source| source.config.as_ref()?.buffer_exhausted_policy);
    let stalls = |policy| {
        matches!(
            policy,
            BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP
                | BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_ABORT
        )
    };
    policies.into_iter().any(stalls)
}

impl Service {
    /// Lets sessions lose nothing if they write into a file and their data sources stall. The owner
    /// then asks [`must_wait`](Self::must_wait) before each commit, and commits little at a time
    /// (`docs/spec/service.md` §18).
    pub fn keep_unwritten(&mut self) {
        self.keeps_unwritten = true;
    }

    /// Returns whether commits have to wait, because a file has not taken enough data yet. Only a
    /// file operation, or the end of the session, changes this.
    #[must_use]
    pub fn must_wait(&self) -> bool {
        self.keeps_unwritten && self.sessions.values().any(|session| self.waits_for_file(session))
    }

    fn waits_for_file(&self, session: &Session) -> bool {
        let Some(file) = session.file.open().filter(|file| file.gets_all) else { return false };
        file.state != FileState::Idle && self.is_filled(session, FULL_PARTS)
    }

    /// Returns whether one of so many parts of a buffer, or more, is unread.
    fn is_filled(&self, session: &Session, parts: usize) -> bool {
        let buffers = session.buffers.iter().filter_map(|&id| self.buffers.get(id));
        buffers.into_iter().any(|buffer| buffer.unread_bytes() > buffer.size_bytes() / parts)
    }

    /// After a loss, lets producers write again what later events need: without the names that were
    /// lost, a reader drops all events to the end of the file.
    pub(super) fn renew_state_after_loss(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        if !self.keeps_unwritten && self.buffers.names.is_none() {
            return;
        }
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let buffers = session.buffers.iter().filter_map(|&id| self.buffers.get(id));
        let losses = buffers.map(|buffer| buffer.stats().chunks_overwritten + buffer.losses_told()).sum();
        let Some(file) = session.file.open_mut() else { return };
        if core::mem::replace(&mut file.losses, losses) < losses {
            self.clear_incremental_state(session_id, cx);
        }
    }

    /// Begins to write the buffers that have enough data.
    pub(super) fn write_filled_buffers(&mut self, cx: &mut Context<'_>) {
        if !self.keeps_unwritten {
            return;
        }
        let is_due = |session: &&Session| {
            let file = session.file.open().filter(|file| file.gets_all && file.state == FileState::Idle);
            file.is_some() && self.is_filled(session, WRITE_PARTS)
        };
        let due: Vec<SessionId> = self.sessions.values().filter(is_due).map(|session| session.id).collect();
        for session in due {
            self.write_file(session, false, cx);
        }
    }
}
