//! The life of sessions, instances and flushes, as the simulator follows it from the calls of
//! clients. `replies` follows the outputs.

use std::collections::{BTreeMap, BTreeSet};

use esatto_protozero::Owned;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::WriteFlushMode;
use esatto_service::{CallId, ConsumerCall, FileId, Input, Output, ProducerCall, SharedBuffer, Step};

use crate::memory::Seen;
use crate::model::{BufferModel, Hello, Instance, SessionModel};
use crate::owner::index_of;
use crate::priority::boost_of;
use crate::profile::MS;
use crate::reference::Reference;
use crate::world::{Actor, World};

/// The time that file writes may add to every deadline.
const FILE_SLACK_NS: u64 = 20_000 * MS;

impl World {
    pub(crate) fn producer_call(
        &mut self,
        index: usize,
        call: CallId,
        parsed: ProducerCall<'_>,
        offered: Option<Box<dyn SharedBuffer>>,
        args: &[u8],
    ) {
        match &parsed {
            ProducerCall::InitializeConnection(request) => {
                let honest = self.honest_tag(index);
                let is_scraped = request.smb_scraping_mode().is_some_and(|mode| mode.0 == 1);
                self.model.hello = Some(Hello { is_scraped, honest });
            }
            ProducerCall::RegisterTraceWriter(request) => {
                let writer = request.trace_writer_id().filter(|id| (1..=65535).contains(id));
                let buffer = request.target_buffer().and_then(|id| u16::try_from(id).ok()).filter(|&id| id != 0);
                if let (Some(writer), Some(buffer), Some(producer)) =
                    (writer, buffer, self.model.producers.get_mut(&index))
                {
                    producer.seen.insert(writer as u16);
                    producer.writers.insert(writer as u16, buffer);
                    if producer.retired.remove(&(writer as u16)) {
                        for buffer in &producer.allowed {
                            if let Some(buffer) = self.model.buffers.get_mut(buffer) {
                                buffer.reference.renew((producer.id, writer as u16));
                            }
                        }
                    }
                }
            }
            ProducerCall::RegisterDataSource(_) => self.clients[index].registered += 1,
            ProducerCall::UnregisterTraceWriter(request) => {
                let writer = request.trace_writer_id().and_then(|id| u16::try_from(id).ok()).filter(|&id| id != 0);
                if let (Some(writer), Some(producer)) = (writer, self.model.producers.get_mut(&index)) {
                    producer.writers.remove(&writer);
                    producer.retired.insert(writer);
                    for buffer in &producer.allowed {
                        if let Some(buffer) = self.model.buffers.get_mut(buffer) {
                            buffer.reference.end((producer.id, writer));
                        }
                    }
                }
            }
            ProducerCall::NotifyDataSourceStarted(request) => {
                let id = request.data_source_id().unwrap_or(0);
                if let Some(instance) = self.model.instance(index, id) {
                    instance.start_acked |= instance.was_started;
                }
            }
            ProducerCall::NotifyDataSourceStopped(request) => {
                let id = request.data_source_id().unwrap_or(0);
                if let Some(instance) = self.model.instance(index, id) {
                    instance.stop_acked |= instance.stop_sent_ns.is_some();
                }
            }
            ProducerCall::ActivateTriggers(_) => {
                for session in self.model.sessions.values_mut() {
                    session.may_end |= session.config.trigger_config.is_some();
                }
            }
            _ => {}
        }
        let unregistered = match &parsed {
            ProducerCall::UnregisterDataSource(request) => {
                Some(request.data_source_name().unwrap_or_default().to_vec())
            }
            _ => None,
        };
        self.handle(Input::ProducerCall { call, method: parsed, offered });
        match parsed {
            ProducerCall::CommitData(_) => self.settle_commit(index, args),
            _ => self.settle(),
        }
        if let Some(name) = unregistered {
            for session in self.model.sessions.values_mut() {
                session.instances.retain(|id, instance| {
                    let is_kept = instance.producer != index || instance.name != name;
                    if !is_kept {
                        self.model.ghosts.insert(*id);
                    }
                    is_kept
                });
            }
        }
        self.model.hello = None;
    }

    fn honest_tag(&self, index: usize) -> Option<u32> {
        (!self.clients[index].is_hostile).then_some(index as u32)
    }

    pub(crate) fn consumer_call(&mut self, index: usize, call: CallId, parsed: ConsumerCall<'_>, file_attached: bool) {
        let session = self.model.session_of(index);
        match &parsed {
            ConsumerCall::EnableTracing(request) => {
                let bytes = request.trace_config().map_or(&[][..], |config| config.as_bytes());
                if request.attach_notification_only() != Some(true) {
                    self.model.enabling = TraceConfig::decode(bytes).ok().map(|config| (call, config));
                    let ends = self.model.enabling.as_ref().is_some_and(|(_, config)| config.exclusive_prio.is_some());
                    self.model.sessions.values_mut().for_each(|session| session.may_end |= ends);
                } else if let Some(session) = session.and_then(|id| self.model.sessions.get_mut(&id)) {
                    session.enable_call = Some(call);
                }
            }
            ConsumerCall::DisableTracing(_) | ConsumerCall::FreeBuffers(_) => {
                if let Some(session) = session.and_then(|id| self.model.sessions.get_mut(&id)) {
                    session.may_end = true;
                    let stop_ms = session.config.data_source_stop_timeout_ms.unwrap_or(5000).max(1);
                    if let Some(enabled) = session.enable_call {
                        self.expect_answer(enabled, u64::from(stop_ms) * MS + FILE_SLACK_NS);
                    }
                }
            }
            ConsumerCall::Flush(request) => {
                let own_ms = session
                    .and_then(|id| self.model.sessions.get(&id))
                    .and_then(|session| session.config.flush_timeout_ms)
                    .filter(|&ms| ms != 0);
                let timeout_ms = request.timeout_ms().filter(|&ms| ms != 0).or(own_ms).unwrap_or(5000);
                self.model.flushing = Some((call, timeout_ms));
                self.expect_answer(call, u64::from(timeout_ms) * MS);
            }
            ConsumerCall::CloneSession(request) => {
                let is_bugreport = request.session_id() == Some(u64::MAX);
                let skips_filter = is_bugreport || request.skip_trace_filter() == Some(true);
                self.model.cloning = Some((call, skips_filter));
                // The flush, and the files.
                self.expect_answer(call, 5_000 * MS + FILE_SLACK_NS);
            }
            ConsumerCall::ObserveEvents(request) => {
                self.model.tells_of_past = true;
                use esatto_schema::observable_events::Type;
                let wants = request.events_to_observe().any(|event| event == Type::TYPE_ALL_DATA_SOURCES_STARTED);
                if wants {
                    self.model.observers.insert(index)
                } else {
                    self.model.observers.remove(&index)
                };
            }
            _ => {}
        }
        let detach_key = match &parsed {
            ConsumerCall::Detach(request) => {
                Some(String::from_utf8_lossy(request.key().unwrap_or_default()).into_owned())
            }
            _ => None,
        };
        self.handle(Input::ConsumerCall { call, method: parsed, file_attached });
        self.settle();
        self.model.tells_of_past = false;
        self.model.cloning = None;
        match parsed {
            ConsumerCall::Detach(_) => {
                let is_gone =
                    self.service.session_views().iter().all(|view| view.consumer.map(index_of) != Some(index));
                if let Some(session) = session.filter(|_| is_gone).and_then(|id| self.model.sessions.get_mut(&id)) {
                    session.consumer = None;
                    session.detach_key.clone_from(&detach_key);
                    self.model.excused.extend(session.enable_call.take());
                    self.detached.extend(detach_key.map(|key| (self.clients[index].peer.uid, key)));
                }
            }
            ConsumerCall::Attach(_) => {
                for view in self.service.session_views() {
                    if view.consumer.map(index_of) == Some(index) {
                        if let Some(session) = self.model.sessions.get_mut(&view.id) {
                            session.consumer = Some(index);
                            // The consumer may have heard it before. A consumer that wants to hear
                            // it again asks.
                            session.all_started_told = true;
                        }
                    }
                }
            }
            ConsumerCall::FreeBuffers(_) => {
                assert!(!self.calls.contains_key(&call), "every request is answered: FreeBuffers is not");
                // A session that is still opening continues without its consumer until it is open.
                if let Some(session) = session.and_then(|id| self.model.sessions.get_mut(&id)) {
                    session.consumer = None;
                }
            }
            ConsumerCall::EnableTracing(_)
            | ConsumerCall::GetTraceStats(_)
            | ConsumerCall::QueryServiceState(_)
            | ConsumerCall::QueryCapabilities(_)
            | ConsumerCall::SaveTraceForBugreport(_) => {}
            _ => assert!(
                !matches!(parsed, ConsumerCall::DisableTracing(_) | ConsumerCall::StartTracing(_))
                    || !self.calls.contains_key(&call),
                "every request is answered: {parsed:?} is not"
            ),
        }
    }

    pub(crate) fn producer_hung_up(&mut self, index: usize) {
        self.acknowledged(index, u64::MAX);
        self.handle(Input::ProducerDisconnected(self.clients[index].id));
        if self
            .model
            .producers
            .get(&index)
            .is_some_and(|producer| producer.is_scraped && producer.has_memory && !producer.is_emulated)
        {
            assert!(
                self.seen.iter().any(|seen| matches!(seen, Seen::Step(Step::Scrape(None)))),
                "what a crashed producer left is not copied"
            );
        }
        self.settle();
        self.forget_producer(index);
    }

    fn forget_producer(&mut self, index: usize) {
        if let Some(producer) = self.model.producers.remove(&index) {
            for buffer in &producer.allowed {
                if let Some(buffer) = self.model.buffers.get_mut(buffer) {
                    buffer.reference.retire_producer(producer.id);
                }
            }
        }
        self.model.creating.remove(&index);
        for session in self.model.sessions.values_mut() {
            session.instances.retain(|_, instance| instance.producer != index);
        }
        self.clients[index].memory = None;
    }

    pub(crate) fn consumer_hung_up(&mut self, index: usize) {
        self.model.observers.remove(&index);
        if let Some(session) = self.model.session_of(index).and_then(|id| self.model.sessions.get_mut(&id)) {
            session.may_end = true;
            session.enable_call = None;
        }
        self.feed(Input::ConsumerDisconnected(self.clients[index].id));
    }

    pub(crate) fn memory_for_producer(&mut self, index: usize, buffer: Option<Box<dyn SharedBuffer>>) {
        if let Some(producer) = self.model.producers.get_mut(&index) {
            producer.has_memory |= buffer.is_some();
        }
        let is_refused = buffer.is_none();
        if is_refused {
            self.acknowledged(index, u64::MAX);
        }
        self.model.is_late = true;
        self.feed(Input::SharedBufferCreated { client: self.clients[index].id, buffer });
        self.model.is_late = false;
        self.model.creating.remove(&index);
        if is_refused {
            // The service ignores everything that this client still sends.
            self.forget_producer(index);
        }
    }

    pub(crate) fn file_opened(&mut self, file: FileId, result: Result<(), String>) {
        if result.is_err() {
            for session in self.model.sessions.values_mut().filter(|session| session.file == Some(file)) {
                session.may_end = true;
                session.file_failed = true;
            }
        }
        self.feed(Input::FileOpened { file, result });
    }

    pub(crate) fn file_written(&mut self, file: FileId, result: Result<(), String>) {
        if result.is_err() {
            for session in self.model.sessions.values_mut().filter(|session| session.file == Some(file)) {
                session.may_end = true;
                session.file_failed |= !session.has_ended;
            }
        }
        self.feed(Input::FileWritten { file, result });
    }

    /// Notes that a producer acknowledged all flushes up to this one, or will never acknowledge
    /// any.
    pub(crate) fn acknowledged(&mut self, index: usize, up_to: u64) {
        let mut complete = Vec::new();
        for (&id, flush) in self.model.flushes.range_mut(..=up_to) {
            if flush.waiting.remove(&index) && flush.waiting.is_empty() {
                complete.push(id);
            }
        }
        for id in complete {
            self.model.completed.extend(self.model.flushes.remove(&id));
        }
    }

    /// Adds the sessions that this step made.
    pub(crate) fn see_new_sessions(&mut self, seen: &[Seen]) {
        if self.service.session_stamp() == self.model.stamp {
            return;
        }
        for view in self.service.session_views() {
            let is_clone =
                |seen: &Seen| matches!(seen, Seen::Step(Step::CloneMade { session, .. }) if *session == view.id);
            if self.model.sessions.contains_key(&view.id) || seen.iter().any(is_clone) {
                continue;
            }
            let (call, config) = self.model.enabling.clone().expect("sessions come of EnableTracing");
            self.tally.sessions += 1;
            for (&id, buffer) in view.buffers.iter().zip(&config.buffers) {
                let discards = buffer.fill_policy.is_some_and(|policy| policy.0 == 2);
                let reference = Reference::new(buffer.size_kb.unwrap_or(0), discards);
                let fresh = BufferModel { reference, last_read: BTreeMap::new(), begins_anew: false, takes: 0 };
                let before = self.model.buffers.insert(id, fresh);
                assert!(before.is_none(), "isolation: buffer {id} belongs to two sessions");
            }
            assert_eq!(view.buffers.len(), config.buffers.len());
            let duration_ms = config.duration_ms.unwrap_or(0);
            let is_deferred = config.deferred_start == Some(true) || config.trigger_config.is_some();
            if duration_ms != 0 && !is_deferred {
                let rest_ms = u64::from(
                    config.flush_timeout_ms.unwrap_or(5000) + config.data_source_stop_timeout_ms.unwrap_or(5000),
                );
                self.expect_answer(call, (u64::from(duration_ms) + rest_ms) * MS + FILE_SLACK_NS);
            }
            let boost = boost_of(&config);
            let session = SessionModel {
                consumer: view.consumer.map(index_of),
                buffers: view.buffers,
                filter: crate::filters::of(&config),
                config,
                enable_call: Some(call),
                clone_call: None,
                created_ns: self.now_ns,
                created_boottime_ns: self.now_ns + self.suspended_ns,
                instances: BTreeMap::new(),
                sequence_ids: BTreeMap::new(),
                keys: BTreeMap::new(),
                first_seen: BTreeSet::new(),
                invalid_packets: 0,
                file: None,
                may_end: false,
                has_ended: false,
                is_freed: false,
                configs_read: 0,
                uuids_read: 0,
                last_flush_ns: self.now_ns,
                last_clear_ns: self.now_ns,
                last_write_ns: self.now_ns,
                started_ns: None,
                all_started_told: false,
                file_failed: false,
                is_clone: false,
                triggers_read: 0,
                machines_told: Default::default(),
                detach_key: None,
                boost,
                awaits_change: boost.and_then(|_| self.model.changing.get(&self.model.last_change).copied()),
            };
            self.model.sessions.insert(view.id, session);
        }
    }

    /// Removes the sessions that this step ended.
    pub(crate) fn see_gone_sessions(&mut self) {
        let stamp = self.service.session_stamp();
        if stamp == core::mem::replace(&mut self.model.stamp, stamp) {
            return;
        }
        let views = self.service.session_views();
        let there: BTreeSet<u64> = views.iter().map(|view| view.id).collect();
        let gone: Vec<u64> = self.model.sessions.keys().copied().filter(|id| !there.contains(id)).collect();
        for id in views.iter().filter(|view| view.is_freed).map(|view| view.id).chain(gone.iter().copied()) {
            self.model.free(id);
        }
        for id in gone {
            let Some(session) = self.model.sessions.remove(&id) else { continue };
            for buffer in &session.buffers {
                self.model.buffers.remove(buffer);
            }
            if let Some(call) = session.enable_call.filter(|call| self.calls.contains_key(call)) {
                panic!("every request is answered: {call:?} of session {id}, which is no more");
            }
        }
    }

    /// Checks that a flush is answered after all its producers have answered and a scrape has
    /// ended.
    pub(crate) fn check_completed(&mut self) {
        for flush in core::mem::take(&mut self.model.completed) {
            if self.now_ns >= flush.ends_ns || !self.model.sessions.contains_key(&flush.session) {
                continue;
            }
            if self.model.scrapes.contains_key(&flush.session) {
                self.model.completed.push(flush);
                continue;
            }
            assert!(self.model.scraped.contains(&flush.session), "a flush of session {} ends unscraped", flush.session);
            if let Some(call) = flush.call {
                assert!(!self.calls.contains_key(&call), "every request is answered: flush {call:?} is complete");
            }
        }
    }

    /// Checks that periodic work of running sessions is not overdue.
    pub(crate) fn check_periods(&mut self) {
        let late_ns = 2 * self.profile.late_ns + 200 * MS;
        let (now_ns, actors, files) = (self.now_ns, &self.actors, &self.files);
        let observers = &self.model.observers;
        for (id, session) in &self.model.sessions {
            let Some(started_ns) = session.started_ns else { continue };
            let is_stopping = session.instances.values().any(|instance| instance.stop_sent_ns.is_some());
            if session.may_end || session.has_ended || session.is_clone || is_stopping {
                continue;
            }
            let duration_ms = u64::from(session.config.duration_ms.unwrap_or(0));
            if session.config.trigger_config.is_some()
                || duration_ms != 0
                    && (session.config.prefer_suspend_clock_for_duration == Some(true)
                        || now_ns >= session.created_ns + duration_ms * MS)
            {
                continue;
            }
            let honest = |instance: &Instance| match &actors[instance.producer] {
                Some(Actor::Honest(producer)) => Some((producer.notifies_start, producer.no_flush)),
                _ => None,
            };
            let is_steady =
                |instance: &&Instance| instance.was_started && honest(instance).is_some_and(|(_, no_flush)| !no_flush);
            let steady_ns = session.instances.values().filter(is_steady).map(|instance| instance.since_ns).min();
            let started_ns = started_ns.max(steady_ns.unwrap_or(0));
            let overdue =
                |last_ns: u64, period_ms: u64| now_ns > last_ns.max(started_ns) + 2 * period_ms * MS + late_ns;
            let config = &session.config;
            let has_steady = steady_ns.is_some();
            if let Some(period_ms) = flush_period_ms(config).filter(|_| has_steady) {
                assert!(!overdue(session.last_flush_ns, period_ms), "timers: session {id} is flushed no more");
            }
            let clears = config.incremental_state_config.as_ref().and_then(|config| config.clear_period_ms);
            if let Some(period_ms) = clears.filter(|&ms| ms != 0 && has_steady) {
                assert!(!overdue(session.last_clear_ns, period_ms.into()), "timers: session {id} is cleared no more");
            }
            let is_writing =
                session.file.and_then(|file| files.get(&file)).is_some_and(|file| !file.waiting.is_empty());
            if session.file.is_some() && !is_writing {
                let period_ms = u64::from(config.file_write_period_ms.unwrap_or(5000).max(100));
                let flush_ms = u64::from(config.flush_timeout_ms.unwrap_or(5000));
                assert!(
                    !overdue(session.last_write_ns, period_ms + flush_ms + 1000),
                    "timers: session {id} is written no more"
                );
            }
            let all_started = session.instances.values().all(|instance| {
                instance.was_started && honest(instance).is_some_and(|(notifies, _)| !notifies || instance.start_acked)
            });
            let is_observed = session.consumer.is_some_and(|consumer| observers.contains(&consumer));
            assert!(
                !all_started || !is_observed || session.all_started_told || !self.model.creating.is_empty(),
                "session {id}: nobody is told that all data sources are started"
            );
        }
    }

    /// Checks that the memory of the service is bounded by the things that clients asked it to
    /// hold.
    pub(crate) fn assert_memory_is_bounded(&mut self) {
        /// Memory of the service itself, and of outputs that are not taken yet.
        const BASE: u64 = 4 << 20;
        /// A session without its buffers: config, events, batches.
        const SESSION: u64 = 512 << 10;
        /// A connection with its registrations.
        const CLIENT: u64 = 16 << 10;
        /// An instance of a data source, with its config.
        const INSTANCE: u64 = 4 << 10;
        /// A sequence in a buffer and in the session.
        const SEQUENCE: u64 = 1 << 10;
        /// The description of a machine by its relay.
        const MACHINE: u64 = 24 << 10;
        /// A command on its way out, with a config that is not encoded yet.
        const OUTPUT: u64 = 4 << 10;
        /// The triggers that one read may report: 1024, each with two names. They are copied once.
        const TRIGGERS: u64 = 2 * 1024 * (2 * 4096 + 64);
        let held = crate::alloc::held();
        let mut bound = BASE + CLIENT * self.clients.iter().filter(|client| client.is_open).count() as u64;
        // Batches that files have not taken yet are the owner's.
        bound += self.files.values().flat_map(|file| &file.waiting).map(|batch| batch.capacity() as u64).sum::<u64>();
        for session in self.model.sessions.values() {
            bound += SESSION + INSTANCE * session.instances.len() as u64;
            bound += SEQUENCE * session.sequence_ids.len() as u64;
        }
        bound += MACHINE * self.model.machines.len() as u64;
        let batches = self.outputs.iter().map(|output| match output {
            Output::WriteFile { bytes, .. } => bytes.capacity() as u64,
            _ => 0,
        });
        bound += batches.sum::<u64>();
        bound += OUTPUT * self.outputs.iter().count() as u64;
        bound += (2 * crate::work::bytes_of(self.outputs.iter())).min(TRIGGERS);
        let pending = self.model.clones.values().flat_map(crate::clones::PendingClone::buffers);
        for buffer in self.model.buffers.values().chain(pending) {
            // The bytes, and the list of chunks: 8 bytes for each of 16, at most, twice while it
            // grows.
            bound += 2 * buffer.reference.capacity() as u64 + SEQUENCE * buffer.reference.sequence_count() as u64;
        }
        assert!(held <= bound, "memory: {held} bytes are held, {bound} is the bound");
    }
}

/// How often data sources are asked to flush while a session runs.
fn flush_period_ms(config: &TraceConfig) -> Option<u64> {
    let own = config.flush_period_ms.filter(|&ms| ms != 0).map(u64::from);
    if config.write_into_file != Some(true) {
        return own;
    }
    let write_ms = u64::from(config.file_write_period_ms.filter(|&ms| ms != 0).unwrap_or(5000).max(100));
    match config.write_flush_mode {
        Some(WriteFlushMode::WRITE_FLUSH_DISABLED) => own,
        Some(WriteFlushMode::WRITE_FLUSH_ENABLED) => Some(write_ms),
        _ if write_ms > 5000 => Some(write_ms),
        _ => Some(5000),
    }
}

impl crate::model::Model {
    /// Returns true if a detached session has this key.
    pub(crate) fn has_detached(&self, key: &str) -> bool {
        self.sessions.values().any(|session| session.consumer.is_none() && session.detach_key.as_deref() == Some(key))
    }

    /// Returns the session of a consumer.
    pub(crate) fn session_of(&self, consumer: usize) -> Option<u64> {
        self.sessions.iter().find(|(_, session)| session.consumer == Some(consumer)).map(|(&id, _)| id)
    }

    fn session_with(&mut self, instance: u64) -> Option<&mut SessionModel> {
        self.sessions.values_mut().find(|session| session.instances.contains_key(&instance))
    }

    /// Returns the session of an instance, or `None` if it ended before the set-up was sent.
    pub(crate) fn session_with_or_ghost(&mut self, instance: u64) -> Option<&mut SessionModel> {
        let is_ghost = self.ghosts.contains(&instance);
        let session = self.session_with(instance);
        assert!(session.is_some() || is_ghost, "a command for instance {instance}, which was not set up");
        session
    }

    pub(crate) fn instance(&mut self, producer: usize, id: u64) -> Option<&mut Instance> {
        let session = self.session_with(id)?;
        session.instances.get_mut(&id).filter(|instance| instance.producer == producer)
    }
}
