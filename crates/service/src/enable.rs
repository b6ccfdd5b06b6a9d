//! EnableTracing: from a config to a session (`docs/spec/service.md §5`).

use esatto_protozero::Owned;
use esatto_schema::trace_config::LockdownModeOperation;
use esatto_schema::trace_config::buffer_config::FillPolicy as ConfigFillPolicy;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{EnableTracingRequestReader, TraceConfig};

use crate::api::{CallId, FileId, Output};
use crate::buffer::{CentralBuffer, FillPolicy};
use crate::compression::Codec;
use crate::config_check;
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::{BufferId, SessionId, next_free};
use crate::name_pattern::NamePattern;
use crate::registry::raw_source_configs;
use crate::service::Service;
use crate::session::{FlushStrategy, News, OutputFile, SequenceIds, Session, State};
use crate::trace_filter::TraceFilter;
use crate::triggers;

const MAX_SESSIONS: usize = 15;
const MAX_SESSIONS_PER_UID: usize = 5;

/// Least time between the beginnings of guarded sessions of one name.
const GUARDED_NAME_INTERVAL_NS: u64 = 300_000_000_000;

/// Names of guarded sessions that are remembered; old ones are forgotten first.
const MAX_GUARDED_NAMES: usize = 1024;

impl Service {
    pub(crate) fn enable_tracing_call(
        &mut self,
        call: CallId,
        request: EnableTracingRequestReader<'_>,
        file_attached: bool,
        cx: &mut Context<'_>,
    ) {
        if request.attach_notification_only() == Some(true) {
            return self.wait_for_end(call, cx);
        }
        let bytes = request.trace_config().map_or(&[][..], |config| config.as_bytes());
        let Ok(config) = TraceConfig::decode(bytes) else { return cx.reject(call) };
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        if let Some(earlier) = consumer.enable_call.replace(call) {
            cx.reject(earlier);
        }
        let source_configs = raw_source_configs(esatto_schema::TraceConfigReader::new(bytes));
        let request = Request { call, config, config_bytes: bytes.to_vec(), source_configs, file_attached };
        if let Err(error) = self.enable(request, cx) {
            self.refuse(call, error, cx);
        }
    }

    fn refuse(&mut self, call: CallId, error: String, cx: &mut Context<'_>) {
        cx.warn(format!("config refused: {error}"));
        if let Some(consumer) = self.consumers.get_mut(&call.client) {
            consumer.enable_call = None;
        }
        reply_disabled(call, Some(error), cx);
    }

    /// Makes a session, or says why not.
    fn enable(&mut self, request: Request, cx: &mut Context<'_>) -> Result<(), String> {
        let config = &request.config;
        match config.lockdown_mode {
            Some(LockdownModeOperation::LOCKDOWN_SET) => self.is_locked_down = true,
            Some(LockdownModeOperation::LOCKDOWN_CLEAR) => self.is_locked_down = false,
            _ => {}
        }
        let consumer = self.consumers.get(&request.call.client).ok_or("the consumer is gone")?;
        let uid = consumer.uid;
        if consumer.session.is_some() {
            return Err("this consumer has a session already".to_owned());
        }
        config_check::check(config)?;
        let codec = Codec::of(config)?;
        let patterns = config_check::compile_patterns(config)?;
        let trigger_patterns = triggers::compile_patterns(config)?;
        self.check_exclusive(config, cx)?;
        self.check_against_sessions(config, uid, cx)?;
        let trace_filter = config.trace_filter.as_deref().map(TraceFilter::load).transpose()?;

        let writes_file = config.write_into_file.unwrap_or(false);
        let path = config.output_path.as_deref().unwrap_or_default().to_vec();
        if writes_file && path.is_empty() && !request.file_attached {
            return Err("write_into_file needs output_path or a file descriptor".to_owned());
        }
        if writes_file && !path.is_empty() && request.file_attached {
            return Err("write_into_file takes output_path or a file descriptor, not both".to_owned());
        }
        let buffers = self.allocate_buffers(config)?;

        self.last.session += 1;
        let id = SessionId(self.last.session);
        let file = writes_file.then(|| {
            self.last.file += 1;
            FileId(self.last.file)
        });
        let session = self.new_session(id, uid, (buffers, patterns), request, file, !path.is_empty());
        let (call, mut session) = session;
        session.triggers.patterns = trigger_patterns;
        session.trace_filter = trace_filter;
        session.codec = codec;
        self.sessions.insert(id, session);
        if let Some(consumer) = self.consumers.get_mut(&call.client) {
            consumer.session = Some(id);
        }
        match file {
            Some(file) if !path.is_empty() => {
                self.files.insert(file, id);
                // Goes on when the file is there.
                cx.push(Output::CreateFile { file, path });
            }
            Some(file) => {
                self.files.insert(file, id);
                cx.push(Output::AdoptFile { file, call });
                self.configure(id, cx);
            }
            None => self.configure(id, cx),
        }
        Ok(())
    }

    fn new_session(
        &mut self,
        id: SessionId,
        consumer_uid: i32,
        (buffers, patterns): (Vec<BufferId>, Vec<Vec<NamePattern>>),
        request: Request,
        file: Option<FileId>,
        is_opening: bool,
    ) -> (CallId, Session) {
        let config = request.config;
        let given = (config.trace_uuid_msb.unwrap_or(0), config.trace_uuid_lsb.unwrap_or(0));
        let session = Session {
            id,
            consumer: Some(request.call.client),
            consumer_uid,
            detach_key: None,
            flush_strategy: FlushStrategy::of(&config),
            config,
            config_bytes: request.config_bytes,
            source_configs: request.source_configs,
            uuid: if given == (0, 0) { self.random.uuid() } else { given },
            state: State::Disabled,
            state_since_ns: 0,
            patterns,
            buffers,
            instances: Vec::new(),
            flushes: Default::default(),
            file: file.map(|id| OutputFile { id, is_opening, bytes_written: 0, is_writing: false, pass: None }),
            trace_filter: None,
            codec: None,
            end_error: None,
            all_started_reported: false,
            triggers: triggers::Triggers::default(),
            news: News::default(),
            sequence_ids: SequenceIds::default(),
            invalid_packets: 0,
            flushes_requested: 0,
            flushes_succeeded: 0,
            flushes_failed: 0,
            final_flush_outcome: None,
        };
        (request.call, session)
    }

    /// All checks passed: data sources are set up, and started unless the start is deferred.
    pub(crate) fn configure(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.set_up_all(id, cx);
        self.arm_triggers(id, cx);
        self.enter(id, State::Configured, cx);
        self.tell_of_others(id);
        let Some(session) = self.sessions.get(&id) else { return };
        let (uid, buffers) = (session.consumer_uid, session.buffers.len());
        cx.info(format!("session {} of uid {uid} configured, {buffers} buffers", id.0));
        let ignores_flush_period = session.config.flush_period_ms.unwrap_or(0) != 0
            && session.flush_strategy
                != (FlushStrategy::Periodic { period_ms: session.config.flush_period_ms.unwrap_or(0) });
        let is_deferred = session.config.deferred_start.unwrap_or(false)
            || triggers::mode_of(&session.config) == Some(TriggerMode::START_TRACING);
        if ignores_flush_period {
            cx.warn("flush_period_ms has no effect with write_into_file and this write_flush_mode".to_owned());
        }
        if !is_deferred {
            self.start(id, cx);
        }
    }

    /// The owner created the output file, or could not.
    pub(crate) fn file_opened(&mut self, file: FileId, result: Result<(), String>, cx: &mut Context<'_>) {
        let session = self.files.get(&file).and_then(|id| self.sessions.get_mut(id));
        let Some(session) = session else {
            // The session went meanwhile.
            if result.is_ok() {
                cx.push(Output::CloseFile(file));
            }
            return;
        };
        let id = session.id;
        match result {
            Ok(()) => {
                if let Some(file) = &mut session.file {
                    file.is_opening = false;
                }
                self.configure(id, cx);
            }
            Err(error) => {
                let path = session.config.output_path.clone().unwrap_or_default();
                session.end_error = Some(format!("output_path {path}: {error}"));
                self.free(id, None, cx);
            }
        }
    }

    /// ChangeTraceConfig: only the producer name filters are taken over.
    pub(crate) fn change_config(&mut self, id: SessionId, config: TraceConfig, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !matches!(session.state, State::Configured | State::Started) {
            return cx.warn(format!("session {} is over, its config cannot change", id.0));
        }
        let patterns = match config_check::compile_patterns(&config) {
            Ok(patterns) => patterns,
            Err(error) => return cx.warn(error),
        };
        let mut is_changed = false;
        for (source, compiled) in session.config.data_sources.iter_mut().zip(&mut session.patterns) {
            let name = source.config.as_ref().and_then(|config| config.name.as_ref());
            let same_name = |other: &&esatto_schema::trace_config::DataSource| {
                other.config.as_ref().and_then(|config| config.name.as_ref()) == name
            };
            let found = config.data_sources.iter().zip(&patterns).find(|(other, _)| same_name(other));
            if let Some((new, patterns)) = found {
                is_changed |= source.producer_name_filter != new.producer_name_filter
                    || source.producer_name_regex_filter != new.producer_name_regex_filter;
                source.producer_name_filter.clone_from(&new.producer_name_filter);
                source.producer_name_regex_filter.clone_from(&new.producer_name_regex_filter);
                compiled.clone_from(patterns);
            }
        }
        if !is_changed {
            return;
        }
        session.config_bytes = session.config.encode();
        let known: std::collections::HashSet<_> = session.instances.iter().map(|instance| instance.producer).collect();
        let is_started = session.state == State::Started;
        let mut matches = Vec::new();
        for (entry, source) in session.config.data_sources.iter().enumerate() {
            let Some(name) = source.config.as_ref().and_then(|config| config.name.as_deref()) else { continue };
            for (index, registration) in self.registry.iter().enumerate() {
                if registration.name == name && !known.contains(&registration.producer) {
                    matches.push((entry, index));
                }
            }
        }
        for (entry, registration) in matches {
            let instance = self.set_up(id, entry, registration, cx);
            if let Some(instance) = instance.filter(|_| is_started) {
                self.start_instance(id, instance, cx);
            }
        }
    }

    fn check_exclusive(&mut self, config: &TraceConfig, cx: &mut Context<'_>) -> Result<(), String> {
        let wanted = config.exclusive_prio.unwrap_or(0);
        let strongest = self.sessions.values().filter_map(|session| session.config.exclusive_prio).max().unwrap_or(0);
        if strongest > 0 && strongest >= wanted {
            return Err(format!(
                "a session with exclusive_prio {strongest} exists, exclusive_prio {wanted} is not above it"
            ));
        }
        if wanted > 0 {
            let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
            for session in sessions {
                let error = format!("ended by a session with exclusive_prio {wanted}");
                self.free(session, Some(error), cx);
            }
        }
        Ok(())
    }

    fn check_against_sessions(&mut self, config: &TraceConfig, uid: i32, cx: &mut Context<'_>) -> Result<(), String> {
        let name = config.unique_session_name.as_deref().unwrap_or_default();
        if !name.is_empty() && self.sessions.values().any(|session| session.unique_name() == name) {
            return Err(format!("a session with unique_session_name {:?} exists", String::from_utf8_lossy(name)));
        }
        self.check_semaphores(config)?;
        if config_check::is_guarded(config) {
            let now_ns = cx.now.boottime_ns;
            let last = self.guarded_starts.get(name).copied();
            if self.guarded_starts.len() >= MAX_GUARDED_NAMES {
                self.guarded_starts.retain(|_, start| now_ns.saturating_sub(*start) <= GUARDED_NAME_INTERVAL_NS);
            }
            if last.is_some_and(|last| now_ns.saturating_sub(last) <= GUARDED_NAME_INTERVAL_NS) {
                return Err("a session with enable_extra_guardrails and this name began less than 300 s ago".to_owned());
            }
            if self.guarded_starts.len() < MAX_GUARDED_NAMES {
                self.guarded_starts.insert(name.to_vec(), now_ns);
            }
        }
        let of_uid = self.sessions.values().filter(|session| session.consumer_uid == uid).count();
        if of_uid >= MAX_SESSIONS_PER_UID {
            return Err(format!("uid {uid} has {of_uid} sessions, at most {MAX_SESSIONS_PER_UID} are possible"));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(format!("there are {MAX_SESSIONS} sessions, no more are possible"));
        }
        Ok(())
    }

    fn check_semaphores(&self, config: &TraceConfig) -> Result<(), String> {
        for semaphore in &config.session_semaphores {
            let mut max = semaphore.max_other_session_count.unwrap_or(0);
            let mut others = 0u64;
            for session in self.sessions.values().filter(|session| session.state != State::Disabled) {
                let mut held = session.config.session_semaphores.iter().filter(|held| held.name == semaphore.name);
                if let Some(held) = held.next() {
                    others += 1;
                    max = max.min(held.max_other_session_count.unwrap_or(0));
                }
            }
            if others > max {
                let name = semaphore.name.clone().unwrap_or_default();
                return Err(format!("session_semaphores: {others} sessions hold {name}, at most {max} others may"));
            }
        }
        Ok(())
    }

    /// All buffers of a config, or none.
    fn allocate_buffers(&mut self, config: &TraceConfig) -> Result<Vec<BufferId>, String> {
        let mut ids = Vec::with_capacity(config.buffers.len());
        for buffer in &config.buffers {
            let policy = match buffer.fill_policy {
                Some(ConfigFillPolicy::DISCARD) => FillPolicy::Discard,
                _ => FillPolicy::Ring,
            };
            let size_kb = buffer.size_kb.unwrap_or(0);
            let id = next_free(self.last.buffer, |id| self.buffers.contains_key(&BufferId(id)));
            let allocated = CentralBuffer::new(size_kb, policy);
            let (Some(id), Ok(allocated)) = (id, allocated) else {
                for id in ids {
                    self.buffers.remove(&id);
                }
                return Err(format!("there is no memory for a buffer of {size_kb} KiB"));
            };
            self.last.buffer = id;
            self.buffers.insert(BufferId(id), allocated);
            ids.push(BufferId(id));
        }
        Ok(ids)
    }
}

/// A decoded EnableTracing request.
struct Request {
    call: CallId,
    config: TraceConfig,
    config_bytes: Vec<u8>,
    source_configs: Vec<Vec<u8>>,
    file_attached: bool,
}
