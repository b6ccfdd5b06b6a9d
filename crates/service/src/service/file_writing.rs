//! Streaming a session into a file (`docs/spec/service.md §18`).
//!
//! A pass writes everything that is in the buffers, batch by batch. The service makes a new batch
//! when the owner has written one, so that no more than two wait in memory. That also holds when
//! the session is freed (`freed_sessions.rs`).

use esatto_schema::trace_config::FFlushMode;

use crate::api::{FileId, Output, TimerClock};
use crate::context::Context;
use crate::ids::SessionId;
use crate::read::file_sink::FileSink;
use crate::service::Service;
use crate::session::flush::{AfterFlush, FlushReason};
use crate::session::flush_strategy::FlushStrategy;
use crate::session::state::State;
use crate::session::trace_file::{FileEnd, FilePass, FileState};
use crate::timers::Purpose;

/// Bytes of a batch.
const BATCH_BYTES: usize = 1024 * 1024;

/// Bytes by which a batch may be longer before its memory moves: the last packet, the bytes before
/// each packet, and the fields that the service adds.
const SLACK_BYTES: usize = 512 * 1024;

/// Batches that the owner has at a time. The service fills one while the owner writes the other.
const MAX_WRITES: usize = 2;

impl Service {
    /// Writes into the file at the end of a write period.
    pub(crate) fn write_file_period(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(session_id).filter(|session| session.state() == State::Started) else {
            return;
        };
        let period_ms = session.file_write_period_ms();
        let flushes_first = session.flushes.strategy == FlushStrategy::BeforeFileWrites;
        self.timers.set_periodic(session_id, Purpose::WriteFile, TimerClock::Monotonic, period_ms, cx);
        if flushes_first {
            self.flush(session_id, 0, FlushReason::Periodic, AfterFlush::WriteFile, cx);
        } else {
            self.write_file(session_id, false, cx);
        }
    }

    /// Begins a write pass, or extends the one under way to the data since then.
    pub(crate) fn write_file(&mut self, session_id: SessionId, is_final: bool, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let Some(file) = session.file.open_mut().filter(|file| file.state != FileState::Opening) else { return };
        let is_final = is_final || file.pass().is_some_and(|pass| pass.is_final);
        file.state = FileState::Writing(FilePass { is_final, has_more: true });
        if is_final {
            session.unread.stats = true;
        }
        self.write_batches(session_id, cx);
    }

    /// Handles the result of writing a batch.
    pub(crate) fn file_written(&mut self, file: FileId, result: Result<(), String>, cx: &mut Context<'_>) {
        if let Some(&id) = self.sessions.files.get(&file).filter(|id| self.sessions.freed.contains_key(id)) {
            return self.continue_drain(id, result, cx);
        }
        let session = self.sessions.of_file(file);
        let Some(session) = session.filter(|session| session.file.open().is_some()) else {
            // The batch of a session that has ended.
            if let Err(error) = result {
                cx.error(format!("the end of a trace file could not be written: {error}"));
            }
            return;
        };
        let session_id = session.id;
        if let Some(file) = session.file.open_mut() {
            file.writes = file.writes.saturating_sub(1);
            if result.is_err() {
                file.end = FileEnd::Failed;
            }
        }
        if let Err(error) = result {
            let path = session.config.output_path.as_ref().map(|path| format!(" {path}")).unwrap_or_default();
            let error = format!("the trace file{path} cannot be written: {error}");
            cx.error(format!("{}: {error}", session.label()));
            self.activity.files_failed += 1;
            session.end_error = Some(error);
            return self.end_file(session_id, cx);
        }
        self.write_batches(session_id, cx);
    }

    /// Makes batches while the owner can take them, and ends the pass when everything is written.
    fn write_batches(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        loop {
            let file = self.sessions.get(session_id).and_then(|session| session.file.open());
            let Some((file, pass)) = file.and_then(|file| Some((file, file.pass()?))) else { return };
            match file.writes {
                0 if !pass.has_more => return self.finish_pass(session_id, cx),
                MAX_WRITES.. => return,
                _ if pass.has_more => self.write_batch(session_id, cx),
                _ => return,
            }
        }
    }

    /// Gives the next batch of the pass to the owner.
    fn write_batch(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(session_id) else { return };
        let Some(file) = session.file.open() else { return };
        let id = file.id;
        let max = session.config.max_file_size_bytes.filter(|&max| max != 0);
        let mut sink = FileSink::new(
            cx.out.buffer(BATCH_BYTES + SLACK_BYTES),
            max.map(|max| max.saturating_sub(file.bytes_written)),
        );
        let has_more = self.read_session(session_id, BATCH_BYTES, &mut sink, cx.now);

        let (bytes, is_full) = sink.into_bytes();
        let Some(file) = self.sessions.get_mut(session_id).and_then(|session| session.file.open_mut()) else { return };
        file.bytes_written += bytes.len() as u64;
        if let FileState::Writing(pass) = &mut file.state {
            pass.has_more = has_more && !is_full;
        }
        if is_full {
            file.end = FileEnd::Full;
        }
        // A batch that used up the work of its turn is written even if it is empty, so that the
        // next batch gets its own turn.
        if !bytes.is_empty() || has_more {
            file.writes += 1;
            cx.push(Output::WriteFile { file: id, bytes });
        }
        if is_full {
            cx.info(format!("session {}: the trace file has reached max_file_size_bytes", session_id.0));
            self.end_file(session_id, cx);
        }
    }

    fn finish_pass(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let syncs = session.config.fflush_post_write == Some(FFlushMode::FFLUSH_ENABLED);
        let Some(file) = session.file.open_mut() else { return };
        let pass = file.pass();
        file.state = FileState::Idle;
        cx.out.forget_buffers();
        if pass.is_some_and(|pass| pass.is_final) {
            self.close_file(session_id, cx);
        } else {
            if syncs {
                cx.push(Output::SyncFile(file.id));
            }
            self.renew_state_after_loss(session_id, cx);
        }
    }

    /// Ends the session, because nothing more can be written.
    fn end_file(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let is_over = |session: &crate::session::Session| matches!(session.state(), State::Disabled | State::Cloned);
        let is_over = self.sessions.get(session_id).is_some_and(is_over);
        if is_over {
            return self.close_file(session_id, cx);
        }
        self.sync_and_forget_file(session_id, cx);
        self.disable(session_id, false, None, cx);
    }

    /// Closes a complete file, and tells the consumer that the session has ended.
    fn close_file(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        self.sync_and_forget_file(session_id, cx);
        self.log_end(session_id, cx);
        self.notify_disabled(session_id, cx);
    }

    fn sync_and_forget_file(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(file) = self.sessions.get_mut(session_id).and_then(|session| session.file.close()) else { return };
        self.sessions.files.remove(&file.id);
        cx.push(Output::SyncFile(file.id));
        cx.push(Output::CloseFile(file.id));
    }

    /// Gives the rest of a session that ends to the owner, as far as it can take it. Returns true
    /// if the owner has written all and the file is closed.
    pub(crate) fn complete_file(&mut self, session_id: SessionId, cx: &mut Context<'_>) -> bool {
        loop {
            let Some(session) = self.sessions.get_mut(session_id) else { return true };
            let Some(file) = session.file.open() else { return true };
            if file.state == FileState::Opening {
                // The service does not know if the file is open. It closes the file when the owner
                // reports it.
                let id = file.id;
                session.file.close();
                self.sessions.files.remove(&id);
                self.notify_disabled(session_id, cx);
                return true;
            }
            match file.pass() {
                Some(pass) if pass.has_more && file.writes >= MAX_WRITES => return false,
                Some(pass) if pass.has_more => self.write_batch(session_id, cx),
                // The owner may still fail to write them.
                Some(pass) if pass.is_final && file.writes > 0 => return false,
                Some(pass) if pass.is_final => self.close_file(session_id, cx),
                _ => self.write_file(session_id, true, cx),
            }
        }
    }
}
