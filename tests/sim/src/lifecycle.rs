//! Calls go in, replies come out: the life of sessions, instances and flushes as the simulation follows it.

use std::collections::{BTreeMap, BTreeSet};

use esatto_protozero::Owned;
use esatto_schema::trace_config::WriteFlushMode;
use esatto_schema::{
    EnableTracingResponse, GetAsyncCommandResponseReader, GetTraceStatsResponseReader, InitializeConnectionResponse,
    ObserveEventsResponseReader, TraceConfig, consumer_port, producer_port,
};
use esatto_service::{CallId, ConsumerCall, FileId, Input, ProducerCall, Reply, SharedBuffer};

use crate::model::{BufferModel, Hello, Identity, Instance, ProducerModel, SessionModel};
use crate::owner::index_of;
use crate::priority::boost_of;
use crate::profile::MS;
use crate::reference::Reference;
use crate::verify::check_stats;
use crate::world::{Actor, CallKind, Pending, World};

/// What file writes may take on top of everything else.
const FILE_SLACK_NS: u64 = 20_000 * MS;

impl World {
    pub(crate) fn producer_call(
        &mut self,
        index: usize,
        call: CallId,
        method: producer_port::Method,
        parsed: ProducerCall<'_>,
        args: &[u8],
    ) {
        use producer_port::Method;
        match &parsed {
            ProducerCall::InitializeConnection { request, .. } => {
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
            ProducerCall::UnregisterTraceWriter(request) => {
                let writer = request.trace_writer_id().and_then(|id| u16::try_from(id).ok()).unwrap_or(0);
                if let Some(producer) = self.model.producers.get_mut(&index) {
                    if producer.writers.remove(&writer).is_some() {
                        producer.retired.insert(writer);
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
        self.handle(Input::ProducerCall { call, method: parsed });
        match method {
            Method::CommitData => self.settle_commit(index, args),
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

    pub(crate) fn consumer_call(
        &mut self,
        index: usize,
        call: CallId,
        method: consumer_port::Method,
        parsed: ConsumerCall<'_>,
        _args: &[u8],
        file_attached: bool,
    ) {
        use consumer_port::Method;
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
            ConsumerCall::DisableTracing | ConsumerCall::FreeBuffers => {
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
            ConsumerCall::ObserveEvents(request) => {
                self.model.is_observing = true;
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
        self.model.is_observing = false;
        match method {
            Method::Detach => {
                let is_gone =
                    self.service.session_views().iter().all(|view| view.consumer.map(index_of) != Some(index));
                if let Some(session) = session.filter(|_| is_gone).and_then(|id| self.model.sessions.get_mut(&id)) {
                    session.consumer = None;
                    session.detach_key.clone_from(&detach_key);
                    self.model.excused.extend(session.enable_call.take());
                    self.detached.extend(detach_key.map(|key| (self.clients[index].peer.uid, key)));
                }
            }
            Method::Attach => {
                for view in self.service.session_views() {
                    if view.consumer.map(index_of) == Some(index) {
                        if let Some(session) = self.model.sessions.get_mut(&view.id) {
                            session.consumer = Some(index);
                            // It may have been said to the consumer before; who wants to hear it again asks.
                            session.all_started_told = true;
                        }
                    }
                }
            }
            Method::EnableTracing
            | Method::GetTraceStats
            | Method::QueryServiceState
            | Method::QueryCapabilities
            | Method::SaveTraceForBugreport => {}
            _ => assert!(
                !matches!(method, Method::DisableTracing | Method::StartTracing | Method::FreeBuffers)
                    || !self.calls.contains_key(&call),
                "every request is answered: {method:?} is not"
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
                self.notes.contains(&esatto_service::probe::Note::Scrape(None)),
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
            // The service is done with it, whatever it still says.
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

    /// A producer acknowledged all flushes up to this one, or will never acknowledge any.
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

    /// Sessions that this step made.
    pub(crate) fn see_new_sessions(&mut self) {
        if self.service.session_stamp() == self.model.stamp {
            return;
        }
        for view in self.service.session_views() {
            if self.model.sessions.contains_key(&view.id) {
                continue;
            }
            let (call, config) = self.model.enabling.clone().expect("sessions come of EnableTracing");
            self.tally.sessions += 1;
            for (&id, buffer) in view.buffers.iter().zip(&config.buffers) {
                let discards = buffer.fill_policy.is_some_and(|policy| policy.0 == 2);
                let reference = Reference::new(buffer.size_kb.unwrap_or(0), discards);
                let fresh = BufferModel { reference, last_read: BTreeMap::new() };
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
                config,
                enable_call: Some(call),
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
                detach_key: None,
                boost,
                awaits_change: boost.and_then(|_| self.model.changing.get(&self.model.last_change).copied()),
            };
            self.model.sessions.insert(view.id, session);
        }
    }

    /// Sessions that this step ended for good.
    pub(crate) fn see_gone_sessions(&mut self) {
        let stamp = self.service.session_stamp();
        if stamp == core::mem::replace(&mut self.model.stamp, stamp) {
            return;
        }
        let there: BTreeSet<u64> = self.service.session_views().iter().map(|view| view.id).collect();
        let gone: Vec<u64> = self.model.sessions.keys().copied().filter(|id| !there.contains(id)).collect();
        for id in gone {
            let Some(session) = self.model.sessions.remove(&id) else { continue };
            self.model.ghosts.extend(session.instances.keys());
            for buffer in &session.buffers {
                self.model.buffers.remove(buffer);
                for producer in self.model.producers.values_mut() {
                    producer.allowed.remove(buffer);
                    producer.writers.retain(|_, target| target != buffer);
                }
            }
            self.model.flushes.retain(|_, flush| flush.session != id);
            if let Some(call) = session.enable_call.filter(|call| self.calls.contains_key(call)) {
                panic!("every request is answered: {call:?} of session {id}, which is no more");
            }
        }
    }

    /// Flushes that everybody has answered are answered themselves, after a scrape.
    pub(crate) fn check_completed(&mut self) {
        for flush in core::mem::take(&mut self.model.completed) {
            if self.now_ns >= flush.ends_ns || !self.model.sessions.contains_key(&flush.session) {
                continue;
            }
            assert!(self.model.scraped.contains(&flush.session), "a flush of session {} ends unscraped", flush.session);
            if let Some(call) = flush.call {
                assert!(!self.calls.contains_key(&call), "every request is answered: flush {call:?} is complete");
            }
        }
    }

    pub(crate) fn model_rejected(&mut self, call: CallId, pending: Pending) {
        match pending.kind {
            CallKind::Flush => {
                let found = self.model.flushes.iter().find(|(_, flush)| flush.call == Some(call)).map(|(&id, _)| id);
                let Some(flush) = found.and_then(|id| self.model.flushes.remove(&id)) else { return };
                let is_over = self.now_ns >= flush.ends_ns;
                let is_gone = self.service.session_views().iter().all(|view| view.id != flush.session);
                assert!(is_over || is_gone, "flush {call:?} is given up before its time");
            }
            CallKind::Commit => {
                let index = index_of(call.client);
                let is_ready = self.model.producers.get(&index).is_some_and(|producer| producer.has_memory);
                assert!(!is_ready, "a commit of client {index} is rejected");
            }
            _ => {}
        }
    }

    pub(crate) fn model_replied(&mut self, index: usize, reply: &Reply, pending: Pending) {
        let body = reply.body.as_bytes();
        match pending.kind {
            CallKind::Commands => self.model_command(index, body),
            CallKind::Simple if self.model.hello.is_some() => self.model_hello(index, body),
            CallKind::Enable => self.model_ended(reply.call, body),
            CallKind::Flush => {
                let waits = self.model.flushes.values().any(|flush| flush.call == Some(reply.call));
                assert!(!waits, "flush {:?} succeeds before everybody has answered", reply.call);
            }
            CallKind::Stats => {
                let stats = GetTraceStatsResponseReader::new(body).trace_stats();
                let session = self.model.session_of(index).and_then(|id| self.model.sessions.get(&id));
                if let (Some(stats), Some(session)) = (stats, session) {
                    let discarded = (self.model.discarded_chunks, self.model.discarded_patches);
                    check_stats(session, &self.model.buffers, stats, discarded);
                }
            }
            CallKind::Observe => {
                let events = ObserveEventsResponseReader::new(body).events();
                if events.is_some_and(|events| events.all_data_sources_started() == Some(true)) {
                    self.model_all_started(index);
                }
            }
            CallKind::Read | CallKind::Simple | CallKind::Commit | CallKind::Clone => {}
        }
    }

    fn model_hello(&mut self, index: usize, body: &[u8]) {
        let Some(hello) = self.model.hello.take() else { return };
        let response = InitializeConnectionResponse::decode(body).expect("a response that is a message");
        self.model.last_producer += 1;
        let id = self.model.last_producer;
        let peer = self.clients[index].peer;
        let identity = Identity { uid: peer.uid, pid: peer.pid, machine: peer.machine_id, honest: hello.honest };
        self.model.identities.insert(id, identity);
        let producer = ProducerModel {
            id,
            is_emulated: response.use_shmem_emulation == Some(true),
            is_scraped: hello.is_scraped,
            has_memory: response.using_shmem_provided_by_producer == Some(true),
            ..ProducerModel::default()
        };
        self.model.producers.insert(index, producer);
    }

    fn model_command(&mut self, index: usize, body: &[u8]) {
        let command = GetAsyncCommandResponseReader::new(body);
        let (now_ns, is_late) = (self.now_ns, self.model.is_late);
        if let Some(setup) = command.setup_data_source() {
            let config = setup.config().expect("a set-up has a config");
            let id = setup.new_instance_id().unwrap_or(0);
            let session_id = config.tracing_session_id().unwrap_or(0);
            let Some(session) = self.model.sessions.get_mut(&session_id) else {
                // It waited for the producer's memory, and the session went meanwhile.
                self.model.ghosts.insert(id);
                return;
            };
            assert_eq!(session.awaits_change, None, "session {session_id} begins before its priority is there");
            let target = config.target_buffer().unwrap_or(0) as u16;
            let name = config.name().unwrap_or_default().to_vec();
            let wanted = session.config.data_sources.iter().filter_map(|source| source.config.as_ref());
            let mut wanted = wanted.filter(|config| config.name.as_deref() == Some(&name[..]));
            assert!(
                wanted.any(|config| session.buffers.get(config.target_buffer.unwrap_or(0) as usize) == Some(&target)),
                "isolation: {} is told to write to buffer {target}",
                String::from_utf8_lossy(&name)
            );
            let instance = Instance {
                producer: index,
                name,
                since_ns: now_ns,
                was_started: false,
                start_acked: false,
                stop_sent_ns: None,
                stop_acked: false,
            };
            assert!(session.instances.insert(id, instance).is_none(), "an instance id is used twice");
            let producer = self.model.producers.get_mut(&index).expect("a producer is told what to do");
            producer.allowed.insert(target);
            producer.has_memory |= producer.is_emulated;
        } else if let Some(start) = command.start_data_source() {
            let id = start.new_instance_id().unwrap_or(0);
            let Some(session) = self.model.session_with_or_ghost(id) else { return };
            session.started_ns.get_or_insert(now_ns);
            let instance = session.instances.get_mut(&id).expect("it was found there");
            assert_eq!(instance.producer, index, "isolation: a start for somebody else");
            assert!(!core::mem::replace(&mut instance.was_started, true), "an instance is started twice");
        } else if let Some(stop) = command.stop_data_source() {
            let id = stop.instance_id().unwrap_or(0);
            let Some(session) = self.model.session_with_or_ghost(id) else { return };
            let instance = session.instances.get_mut(&id).expect("it was found there");
            assert_eq!(instance.producer, index, "isolation: a stop for somebody else");
            assert!(instance.stop_sent_ns.replace(now_ns).is_none(), "an instance is stopped twice");
            // It waited for memory, who knows how long.
            instance.stop_acked |= is_late;
        } else if let Some(flush) = command.flush() {
            self.model_flush_command(
                index,
                flush.request_id().unwrap_or(0),
                flush.flags().unwrap_or(0),
                flush.data_source_ids(),
            );
        } else if let Some(clear) = command.clear_incremental_state() {
            for id in clear.data_source_ids() {
                let Some(session) = self.model.session_with_or_ghost(id) else { return };
                session.last_clear_ns = now_ns;
            }
        }
    }

    fn model_flush_command(&mut self, index: usize, id: u64, flags: u64, mut instances: impl Iterator<Item = u64>) {
        let Some(first) = instances.next() else {
            // A producer that copies its own chunks is asked for no instance; the others tell of which session it is.
            let flush = self.model.flushes.entry(id).or_default();
            flush.waiting.insert(index);
            return;
        };
        let session_id = self.model.sessions.iter().find(|(_, session)| session.instances.contains_key(&first));
        let Some((&session_id, _)) = session_id else {
            assert!(self.model.ghosts.contains(&first), "a flush without a set-up");
            return;
        };
        let session = self.model.sessions.get_mut(&session_id).expect("it was found there");
        assert_eq!(session.instances[&first].producer, index, "isolation: a flush for somebody else");
        let own_ms = session.config.flush_timeout_ms.filter(|&ms| ms != 0).unwrap_or(5000);
        if flags == 0x11 {
            session.last_flush_ns = self.now_ns;
        }
        let (call, timeout_ms) = match self.model.flushing {
            Some((call, timeout_ms)) => (Some(call), timeout_ms),
            None => (None, own_ms),
        };
        let ends_ns = self.now_ns + u64::from(timeout_ms) * MS;
        // Commands wait while a producer's memory is made, so nobody outside knows whom such a flush waits for.
        let is_certain = self.model.creating.is_empty();
        if !is_certain && self.model.is_late && !self.model.flushes.contains_key(&id) {
            return;
        }
        let flush = self.model.flushes.entry(id).or_default();
        (flush.session, flush.call, flush.ends_ns) = (session_id, call, if is_certain { ends_ns } else { 0 });
        flush.waiting.insert(index);
    }

    /// EnableTracing was answered.
    fn model_ended(&mut self, call: CallId, body: &[u8]) {
        let response = EnableTracingResponse::decode(body).expect("a response that is a message");
        assert_eq!(response.disabled, Some(true));
        let error = response.error.map(|error| error.to_string()).unwrap_or_default();
        let is_there: BTreeSet<u64> = self.service.session_views().iter().map(|view| view.id).collect();
        let (now_ns, boottime_ns) = (self.now_ns, self.now_ns + self.suspended_ns);
        let found = self.model.sessions.iter_mut().find(|(_, session)| session.enable_call == Some(call));
        let Some((id, session)) = found else { return };
        session.enable_call = None;
        session.has_ended = true;
        assert!(
            !session.file_failed || !error.is_empty(),
            "the end of session {id} does not tell that its file failed"
        );
        if !is_there.contains(id) {
            return;
        }
        let duration_ms = u64::from(session.config.duration_ms.unwrap_or(0));
        let lasted_ns = match session.config.prefer_suspend_clock_for_duration {
            Some(true) => boottime_ns - session.created_boottime_ns,
            _ => now_ns - session.created_ns,
        };
        let is_due = duration_ms != 0 && lasted_ns >= duration_ms * MS;
        let is_full = session.config.max_file_size_bytes.is_some();
        let has_triggers = session.config.trigger_config.is_some();
        assert!(session.may_end || is_due || is_full || has_triggers, "session {id} ends before its time");
        let timeout_ns = u64::from(session.config.data_source_stop_timeout_ms.unwrap_or(5000)) * MS;
        for (instance_id, instance) in &session.instances {
            let Some(Actor::Honest(producer)) = &self.actors[instance.producer] else { continue };
            let Some(sent_ns) = instance.stop_sent_ns.filter(|_| instance.was_started) else { continue };
            assert!(
                instance.stop_acked || !producer.notifies_stop || now_ns >= sent_ns + timeout_ns,
                "session {id} ends before instance {instance_id} acknowledged its stop"
            );
        }
    }

    fn model_all_started(&mut self, index: usize) {
        let Some(id) = self.model.session_of(index) else { return };
        let session = &self.model.sessions[&id];
        if session.all_started_told || self.model.is_observing {
            // Said before, and now again.
            self.model.sessions.get_mut(&id).expect("it is there").all_started_told = true;
            return;
        }
        for (instance_id, instance) in &session.instances {
            let Some(Actor::Honest(producer)) = &self.actors[instance.producer] else { continue };
            assert!(
                instance.start_acked || !producer.notifies_start,
                "all data sources of session {id} are said to be started, {instance_id} is not"
            );
        }
        self.model.sessions.get_mut(&id).expect("it is there").all_started_told = true;
    }

    /// What has to happen every so often does.
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

    /// What the service holds is bounded by what it was asked to hold.
    pub(crate) fn assert_memory_is_bounded(&mut self) {
        /// Memory of the service itself, and of what is on its way out.
        const BASE: u64 = 4 << 20;
        /// A session without its buffers: config, events, batches.
        const SESSION: u64 = 512 << 10;
        /// A connection, with what it registered.
        const CLIENT: u64 = 16 << 10;
        /// An instance of a data source, with its config.
        const INSTANCE: u64 = 4 << 10;
        /// A sequence in a buffer and in the session.
        const SEQUENCE: u64 = 1 << 10;
        let held = crate::alloc::held();
        let mut bound = BASE + CLIENT * self.clients.iter().filter(|client| client.is_open).count() as u64;
        // Batches that files have not taken yet are the owner's.
        bound += self.files.values().flat_map(|file| &file.waiting).map(|batch| batch.capacity() as u64).sum::<u64>();
        for session in self.model.sessions.values() {
            bound += SESSION + INSTANCE * session.instances.len() as u64;
            bound += SEQUENCE * session.sequence_ids.len() as u64;
        }
        for buffer in self.model.buffers.values() {
            // The bytes, and the list of chunks: 8 bytes for each of 16, at most, twice while it grows.
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
    /// Whether a session waits under this key.
    pub(crate) fn has_detached(&self, key: &str) -> bool {
        self.sessions.values().any(|session| session.consumer.is_none() && session.detach_key.as_deref() == Some(key))
    }

    /// The session that belongs to a consumer.
    pub(crate) fn session_of(&self, consumer: usize) -> Option<u64> {
        self.sessions.iter().find(|(_, session)| session.consumer == Some(consumer)).map(|(&id, _)| id)
    }

    fn session_with(&mut self, instance: u64) -> Option<&mut SessionModel> {
        self.sessions.values_mut().find(|session| session.instances.contains_key(&instance))
    }

    /// The session of an instance; none if it was gone before its set-up was sent.
    fn session_with_or_ghost(&mut self, instance: u64) -> Option<&mut SessionModel> {
        let is_ghost = self.ghosts.contains(&instance);
        let session = self.session_with(instance);
        assert!(session.is_some() || is_ghost, "a command for instance {instance}, which was not set up");
        session
    }

    fn instance(&mut self, producer: usize, id: u64) -> Option<&mut Instance> {
        let session = self.session_with(id)?;
        session.instances.get_mut(&id).filter(|instance| instance.producer == producer)
    }
}
