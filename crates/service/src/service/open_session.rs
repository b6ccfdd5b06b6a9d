//! Opening of a session, which waits for the resources of its accepted config: priority, then
//! output file.
//!
//! Until the owner has provided both, the config affects no other client. If one of them is not
//! available, the service refuses the config, and nothing of it remains. Afterwards the config
//! takes its effects on others: lockdown, the end of sessions that an exclusive one displaces, and
//! the start time of a guarded name.

use esatto_schema::trace_config::LockdownModeOperation;
use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::api::{FileId, Output};
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::SessionId;
use crate::priority_boost::ChangeId;
use crate::service::Service;
use crate::session::ConsumerLink;
use crate::session::activity::refusal_in_words;
use crate::session::config_check;
use crate::session::flush_strategy::FlushStrategy;
use crate::session::phase::Phase;
use crate::session::trace_file::FileState;
use crate::session::triggers;

impl Service {
    /// Asks for the next resource that a session needs. If it has all of them, configures it.
    pub(crate) fn open(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(opening) = session.opening_mut() else { return };
        if opening.priority.is_some() {
            return;
        }
        let path = opening.path.take();
        let uid = session.consumer_uid;
        match (session.file.open(), path) {
            // The session continues when the file is open.
            (Some(file), Some(path)) => cx.push(Output::CreateFile { file: file.id, path, uid }),
            _ => self.accept(id, cx),
        }
    }

    /// Handles the result of creating the output file.
    pub(crate) fn file_opened(&mut self, file: FileId, result: Result<(), String>, cx: &mut Context<'_>) {
        let session = self.sessions.of_file(file);
        let Some(session) = session else {
            // The session has ended meanwhile.
            if result.is_ok() {
                cx.push(Output::CloseFile(file));
            }
            return;
        };
        let id = session.id;
        match result {
            Ok(()) => self.accept(id, cx),
            Err(error) => {
                let path = session.config.output_path.clone().unwrap_or_default();
                self.give_up(id, format!("output_path {path}: {error}"), cx);
            }
        }
    }

    /// Refuses a config whose resources are not available.
    pub(crate) fn give_up(&mut self, id: SessionId, error: String, cx: &mut Context<'_>) {
        if let Some(session) = self.sessions.get_mut(id) {
            cx.warn(refusal_in_words(session.unique_name(), session.consumer_uid, &error));
            self.activity.sessions_refused += 1;
            session.end_error = Some(error);
        }
        self.free(id, None, cx);
    }

    /// Ends the wait of a session that is being freed: tells its consumer, and writes nothing to
    /// its file.
    pub(crate) fn stop_opening(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(opening) = session.finish_opening() else { return };
        let (file, end_error) = (session.file.close(), session.end_error.clone());
        if let Some(file) = file {
            self.sessions.files.remove(&file.id);
            // The service closes a file that is being created when the owner reports it.
            if opening.is_adopted {
                cx.push(Output::CloseFile(file.id));
            }
        }
        match opening.enable_call {
            Some(call) => reply_disabled(call, end_error, cx),
            None => self.notify_disabled(id, cx),
        }
    }

    /// Frees a session whose consumer has called FreeBuffers or disconnected.
    ///
    /// A session that is still opening is freed when it is open. So its file contains it, and
    /// producers were told to start and to stop, however long the owner takes.
    pub(crate) fn free_for_consumer(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let consumer = session.consumer();
        let Some(opening) = session.opening_mut() else { return self.free(id, None, cx) };
        opening.frees = true;
        let consumer = consumer.and_then(|client| self.consumers.get_mut(client));
        if let Some(consumer) = &consumer {
            opening.enable_call = consumer.enable_call;
        }
        session.link = ConsumerLink::Absent;
        let Some(consumer) = consumer else { return };
        consumer.enable_call = None;
        consumer.session = None;
        if let Some(call) = consumer.read_call.take() {
            cx.reply_empty(call);
        }
    }

    /// Configures a session that has all its resources. The config takes its effects.
    fn accept(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(opening) = session.finish_opening() else { return };
        if let Some(file) = session.file.open_mut() {
            file.state = FileState::Idle;
        }
        let (uid, lockdown) = (session.consumer_uid, &mut self.producers.lockdown);
        match session.config.lockdown_mode {
            Some(LockdownModeOperation::LOCKDOWN_SET) => lockdown.set(&session.label(), uid, self.config.uid, cx),
            Some(LockdownModeOperation::LOCKDOWN_CLEAR) => lockdown.lift(&session.label(), uid, cx),
            _ => {}
        }
        if config_check::is_guarded(&session.config) {
            let name = session.unique_name().to_vec();
            let uid = session.consumer_uid;
            let is_trusted = self.sessions.is_trusted(uid);
            self.sessions.guarded_names.add(name, uid, is_trusted, cx.now);
        }
        self.displace_others(id, cx);
        self.configure(id, cx);
        if opening.starts {
            self.start(id, cx);
        }
        if opening.stops {
            self.disable(id, false, None, cx);
        }
        if opening.frees {
            self.free(id, None, cx);
            // The file was complete before the session was freed.
            if let Some(call) = opening.enable_call {
                reply_disabled(call, None, cx);
            }
        }
    }

    /// Sets up the data sources, and starts them unless the start is deferred.
    fn configure(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.set_up_all(id, |_| false, cx);
        self.arm_triggers(id, cx);
        self.sessions.enter(id, Phase::Configured, cx);
        self.sessions.tell_of_others(id);
        let Some(session) = self.sessions.get(id) else { return };
        let flush_period_ms = session.config.flush_period_ms.unwrap_or(0);
        let ignores_flush_period = flush_period_ms != 0
            && session.flushes.strategy != (FlushStrategy::Periodic { period_ms: flush_period_ms });
        let is_deferred = session.config.deferred_start.unwrap_or(false)
            || triggers::mode_of(&session.config) == Some(TriggerMode::START_TRACING);
        if ignores_flush_period {
            cx.warn(format!(
                "{}: flush_period_ms has no effect, because with write_into_file the service flushes every 5 s or \
                 before each write; to use flush_period_ms, set write_flush_mode: WRITE_FLUSH_DISABLED",
                session.label()
            ));
        }
        if is_deferred {
            cx.info(format!("{} of uid {} waits for its start", session.label(), session.consumer_uid));
        } else {
            self.start(id, cx);
        }
    }

    /// Asks for the strongest boost of all sessions. If a session is named, it waits for the
    /// change.
    pub(crate) fn update_priority(&mut self, opens: Option<SessionId>, cx: &mut Context<'_>) {
        let boost = self.sessions.values().filter_map(|session| session.boost).max();
        let change = self.priorities.ask(boost, cx);
        let opening = opens.and_then(|id| self.sessions.get_mut(id)).and_then(|session| {
            let id = session.id;
            session.opening_mut().map(|opening| (id, opening))
        });
        if let Some((id, opening)) = opening {
            if self.priorities.wait(change, id) {
                opening.priority = Some(change);
            }
        }
    }

    /// Handles the result of a change of priority.
    pub(crate) fn priority_set(&mut self, change: ChangeId, result: Result<(), String>, cx: &mut Context<'_>) {
        for id in self.priorities.answered(change, &result, cx) {
            match &result {
                Ok(()) => {
                    if let Some(opening) = self.sessions.get_mut(id).and_then(|session| session.opening_mut()) {
                        opening.priority = None;
                    }
                    self.open(id, cx);
                }
                Err(error) => self.give_up(id, format!("priority_boost is not possible: {error}"), cx),
            }
        }
    }
}
