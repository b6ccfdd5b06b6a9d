//! EnableTracing: from a config to a session (`docs/spec/service.md §5`).

use esatto_map::{LargeMap, LargeSet};
use esatto_protozero::Owned;
use esatto_schema::{EnableTracingRequestReader, TraceConfig};

use crate::api::{CallId, Output};
use crate::client_text::cut_text;
use crate::consumer::reply_disabled;
use crate::context::Context;
use crate::ids::SessionId;
use crate::name_pattern::Quota;
use crate::priority_boost;
use crate::read::Reading;
use crate::read::compression::Codec;
use crate::read::trace_filter::TraceFilter;
use crate::service::{Service, back_pressure};
use crate::session::activity::refusal_in_words;
use crate::session::config_check;
use crate::session::flush::Flushes;
use crate::session::flush_strategy::FlushStrategy;
use crate::session::instance_config::raw_source_configs;
use crate::session::members::{ConfigEntries, Member};
use crate::session::pending_resources::PendingResources;
use crate::session::phase::Phase;
use crate::session::state::State;
use crate::session::trace_file::OutputFile;
use crate::session::triggers;
use crate::session::{NewSession, Session};

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
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        for earlier in [consumer.enable_call.replace(call), consumer.detached_call.take()].into_iter().flatten() {
            cx.reject(earlier);
        }
        cx.charge_bytes(4 * bytes.len());
        let source_configs = raw_source_configs(esatto_schema::TraceConfigReader::new(bytes));
        let request = Request { call, config, config_bytes: bytes.to_vec(), source_configs, file_attached };
        let name = request.config.unique_session_name.clone().unwrap_or_default();
        if let Err(error) = self.enable(request, cx) {
            self.refuse(call, &name, error, cx);
        }
    }

    fn refuse(&mut self, call: CallId, name: &[u8], error: String, cx: &mut Context<'_>) {
        let error = cut_text(error);
        let uid = self.consumers.get(call.client).map_or(-1, |consumer| consumer.uid);
        cx.warn(refusal_in_words(name, uid, &error));
        self.activity.sessions_refused += 1;
        if let Some(consumer) = self.consumers.get_mut(call.client) {
            consumer.enable_call = None;
        }
        reply_disabled(call, Some(error), cx);
    }

    /// Makes a session. Changes nothing before all checks have passed.
    ///
    /// # Errors
    ///
    /// A text for the consumer.
    fn enable(&mut self, request: Request, cx: &mut Context<'_>) -> Result<(), String> {
        let config = &request.config;
        let consumer = self.consumers.get(request.call.client).ok_or("the consumer is gone")?;
        let uid = consumer.uid;
        if consumer.session.is_some() {
            return Err("this consumer has a session already".to_owned());
        }
        self.check_not_stopping()?;
        config_check::check(config)?;
        config_check::check_sizes(config, &request.source_configs, request.config_bytes.len())?;
        let quota = Quota::default();
        let patterns = config_check::compile_patterns(config, &quota)?;
        let trigger_patterns = triggers::compile_patterns(config, &quota)?;
        self.sessions.check_against_sessions(config, uid, self.producers.lockdown.is_on(), cx)?;
        let filter = config.trace_filter.as_deref().map(|filter| TraceFilter::load(filter, &quota)).transpose()?;
        let codec = Codec::of(config)?;
        let boost = priority_boost::boost_of(config)?;
        let path = file_path(config, request.file_attached)?;
        let writes_file = config.write_into_file.unwrap_or(false);
        let opening =
            PendingResources { is_adopted: writes_file && path.is_none(), path, ..PendingResources::default() };
        let gets_all = writes_file && self.keeps_unwritten && back_pressure::is_wanted(config);
        let min_kb = if gets_all { back_pressure::MIN_KEPT_KB } else { 0 };
        self.sessions.check_memory(
            uid,
            config.exclusive_prio.unwrap_or(0),
            bytes_of_buffers(config, min_kb),
            self.buffers.max_bytes,
        )?;
        let buffers = self.buffers.allocate(config, min_kb)?;
        for &id in buffers.iter().filter(|_| gets_all) {
            if let Some(buffer) = self.buffers.get_mut(id) {
                buffer.keep_unread();
            }
        }

        let id = self.sessions.next_session();
        let file = writes_file.then(|| self.sessions.next_file());
        if let Some(file) = file {
            self.sessions.files.insert(file, id);
            if opening.is_adopted {
                cx.push(Output::AdoptFile { file, call: request.call });
            }
        }
        let given = (config.trace_uuid_msb.unwrap_or(0), config.trace_uuid_lsb.unwrap_or(0));
        let entries = ConfigEntries::new(config, request.source_configs, patterns);
        let flushes = Flushes::new(FlushStrategy::of(config));
        let mut session = Session::new(NewSession {
            id,
            consumer: request.call.client,
            consumer_uid: uid,
            buffer_bytes: bytes_of_buffers(config, min_kb),
            config: request.config,
            config_bytes: request.config_bytes,
            uuid: if given == (0, 0) { self.random.uuid() } else { given },
            phase: Phase::Opening(opening),
            buffers,
            file: file.map(|id| OutputFile { gets_all, ..OutputFile::opening(id, 0) }),
            reading: Reading { filter, codec, ..Reading::default() },
        });
        session.entries = entries;
        session.flushes = flushes;
        session.triggers = triggers::Triggers::new(trigger_patterns);
        session.boost = boost;
        session.unread.told = self.machines.told_to_new_session();
        session.departed_since = self.departed.next();
        if let Some(consumer) = session.consumer().and_then(|client| self.consumers.get_mut(client)) {
            consumer.session = Some(id);
            session.consumer_pid = consumer.pid;
        }
        self.sessions.listeners.add(&session);
        self.sessions.insert(session);
        self.update_priority(boost.map(|_| id), cx);
        self.open(id, cx);
        Ok(())
    }

    /// Handles ChangeTraceConfig, which changes only the producer name filters.
    pub(crate) fn change_config(&mut self, id: SessionId, config: TraceConfig, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if !matches!(session.state(), State::Configured | State::Started) {
            return cx.warn(format!("session {} is over, its config cannot change", id.0));
        }
        let patterns = match config_check::compile_patterns(&config, &Quota::default()) {
            Ok(patterns) => patterns,
            Err(error) => return cx.warn(error),
        };
        // The first entry of each name counts.
        let mut wanted: LargeMap<&[u8], usize> = LargeMap::new();
        for (index, source) in config.data_sources.iter().enumerate() {
            let name = source.config.as_ref().and_then(|config| config.name.as_deref()).unwrap_or_default();
            wanted.get_or_insert_with(name, || index);
        }
        cx.charge(config.data_sources.len() + session.config.data_sources.len());
        // TraceConfig implements no Clone, because it would need much code and only this and clones
        // use it.
        let Ok(mut changed) = TraceConfig::decode(&session.config.encode()) else { return };
        let mut compiled = session.entries.patterns.clone();
        let mut is_changed = false;
        for (source, compiled) in changed.data_sources.iter_mut().zip(&mut compiled) {
            let name = source.config.as_ref().and_then(|config| config.name.as_deref()).unwrap_or_default();
            let Some(&index) = wanted.get(name) else { continue };
            let (Some(new), Some(patterns)) = (config.data_sources.get(index), patterns.get(index)) else { continue };
            is_changed |= source.producer_name_filter != new.producer_name_filter
                || source.producer_name_regex_filter != new.producer_name_regex_filter;
            cx.charge(new.producer_name_filter.len() + new.producer_name_regex_filter.len());
            source.producer_name_filter.clone_from(&new.producer_name_filter);
            source.producer_name_regex_filter.clone_from(&new.producer_name_regex_filter);
            compiled.clone_from(patterns);
        }
        if !is_changed {
            return;
        }
        let config_bytes = changed.encode();
        cx.charge_bytes(config_bytes.len());
        if let Err(error) = config_check::check_size(config_bytes.len()) {
            return cx.warn(format!("session {}: its config cannot change: {error}", id.0));
        }
        session.config = changed;
        session.entries.patterns = compiled;
        session.config_bytes = config_bytes;
        session.members.by_producer.values_mut().for_each(Member::forget_filters);
        let known: LargeSet<_> = session.instances.iter().map(|instance| instance.producer).collect();
        cx.charge(session.instances.len());
        self.set_up_all(id, |producer| known.contains(&producer), cx);
    }
}

/// Sums up the bytes of the buffers of a config, which take memory as they fill.
fn bytes_of_buffers(config: &TraceConfig, min_kb: u32) -> u64 {
    config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0).max(min_kb)) * 1024).sum()
}

/// Returns the path of the file that the owner has to create, if there is one.
///
/// # Errors
///
/// A text for the consumer, if `write_into_file` comes without a path and without a descriptor, or
/// with both.
fn file_path(config: &TraceConfig, file_attached: bool) -> Result<Option<Vec<u8>>, String> {
    let path = config.output_path.as_deref().filter(|path| !path.is_empty());
    match (config.write_into_file.unwrap_or(false), path, file_attached) {
        (false, ..) => Ok(None),
        (true, None, true) => Ok(None),
        (true, Some(path), false) => Ok(Some(path.to_vec())),
        (true, None, false) => Err("write_into_file needs output_path or a file descriptor".to_owned()),
        (true, Some(_), true) => Err("write_into_file takes output_path or a file descriptor, not both".to_owned()),
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
