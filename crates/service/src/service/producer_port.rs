//! Calls of the producer port (`docs/spec/wire-protocol.md §8`).

use esatto_protozero::{HeapBuffer, Message, Owned};
use esatto_schema::{
    CommitDataRequestReader, DataSourceDescriptorReader, InitializeConnectionRequestReader,
    InitializeConnectionResponse, PEER_PID_FIELD,
};

use crate::api::{Attachment, CallId, ClientId, MemoryKind, Output, ProducerCall};
use crate::client_text;
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId, writer_from_wire};
use crate::producer::Memory;
use crate::producer::commands::encoded;
use crate::service::Service;
use crate::service::data_source_setup::SetUp;
use crate::session::instances::InstanceState;
use crate::session::state::State;
use crate::shared_buffer::{SharedBuffer, granted_sizes};

/// `smb_scraping_mode` of InitializeConnection.
const SCRAPING_ENABLED: i32 = 1;

impl Service {
    /// Handles every call but InitializeConnection.
    pub(crate) fn producer_call(&mut self, call: CallId, method: ProducerCall<'_>, cx: &mut Context<'_>) {
        let Some(producer) = self.producers.of_client(call.client) else { return cx.reject(call) };
        match method {
            ProducerCall::CommitData(request) => return self.commit_data(call, producer, request, cx),
            ProducerCall::GetAsyncCommand(_) => {
                if let Some(producer) = self.producers.get_mut(producer) {
                    producer.listen(call, cx);
                }
                return;
            }
            ProducerCall::InitializeConnection(_) => return cx.reject(call),
            _ => {}
        }
        cx.reply_empty(call);
        match method {
            ProducerCall::RegisterDataSource(request) => {
                if let Some(descriptor) = request.data_source_descriptor() {
                    self.register_data_source(producer, descriptor, cx);
                }
            }
            ProducerCall::UpdateDataSource(request) => {
                if let Some(descriptor) = request.data_source_descriptor() {
                    self.producers.update_data_source(producer, descriptor, cx);
                }
            }
            ProducerCall::UnregisterDataSource(request) => {
                self.unregister_data_source(producer, request.data_source_name().unwrap_or_default(), cx);
            }
            ProducerCall::RegisterTraceWriter(request) => {
                let writer = writer_from_wire(request.trace_writer_id().unwrap_or(0));
                let buffer = BufferId::from_wire(request.target_buffer().unwrap_or(0));
                if let (Some(writer), Some(buffer)) = (writer, buffer) {
                    self.producers.register_writer(producer, writer, buffer, &mut self.buffers, cx);
                }
            }
            ProducerCall::UnregisterTraceWriter(request) => {
                let writer = writer_from_wire(request.trace_writer_id().unwrap_or(0));
                if let Some(writer) = writer {
                    self.producers.unregister_writer(producer, writer, &mut self.buffers, cx);
                }
            }
            ProducerCall::NotifyDataSourceStarted(request) => {
                self.data_source_started(producer, InstanceId(request.data_source_id().unwrap_or(0)), cx);
            }
            ProducerCall::NotifyDataSourceStopped(request) => {
                self.data_source_stopped(producer, InstanceId(request.data_source_id().unwrap_or(0)), cx);
            }
            ProducerCall::ActivateTriggers(request) => {
                if let Some(producer) = self.producers.get_mut(producer) {
                    producer.is_idle = false;
                }
                self.activate_triggers(producer, request.trigger_names(), cx);
            }
            ProducerCall::Sync(_)
            | ProducerCall::CommitData(_)
            | ProducerCall::GetAsyncCommand(_)
            | ProducerCall::InitializeConnection(_) => {}
        }
    }

    pub(crate) fn initialize_connection(
        &mut self,
        call: CallId,
        request: InitializeConnectionRequestReader<'_>,
        offered: Option<Box<dyn SharedBuffer>>,
        cx: &mut Context<'_>,
    ) {
        if self.producers.of_client(call.client).is_some() {
            return cx.reject(call);
        }
        let Some(connection) = self.producers.connection(call.client) else { return cx.reject(call) };
        let name = request.producer_name().unwrap_or_default();
        if name.len() > client_text::MAX_NAME_BYTES {
            cx.warn(format!("a producer's name of {} bytes is cut to {}", name.len(), client_text::MAX_NAME_BYTES));
        }
        let name = client_text::cut(name);
        let uid = connection.peer.uid;
        if self.producers.lockdown.locks_out(uid, self.config.uid) {
            self.producers.lockdown.refuse(name, uid, self.config.uid, cx);
            return cx.reject(call);
        }
        let Some(mut producer) = self.producers.introduce(call.client) else {
            cx.warn("a producer is refused: 65535 are connected".to_owned());
            return cx.reject(call);
        };
        producer.name = name.into();
        producer.connected_ns = cx.now.boottime_ns;
        producer.sdk_version = client_text::cut(request.sdk_version().unwrap_or_default()).to_vec();
        producer.smb_size_hint = request.shared_memory_size_hint_bytes().unwrap_or(0) as usize;
        producer.page_size_hint = request.shared_memory_page_size_hint_bytes().unwrap_or(0) as usize;
        producer.wants_scraping = request.smb_scraping_mode().is_some_and(|mode| mode.0 == SCRAPING_ENABLED);

        let is_emulated = producer.memory_kind == MemoryKind::Emulated;
        let adopted = offered.filter(|buffer| {
            let sizes = (buffer.size_bytes(), producer.page_size_hint);
            let is_adopted = !is_emulated
                && granted_sizes(sizes.0, sizes.1) == sizes
                && buffer.page_size_bytes() == producer.page_size_hint;
            if !is_adopted {
                cx.warn(format!("memory of producer {} is not adopted: sizes {sizes:?}", producer.display_name()));
            }
            is_adopted
        });
        let response = InitializeConnectionResponse {
            using_shmem_provided_by_producer: Some(adopted.is_some()),
            direct_smb_patching_supported: Some(true),
            use_shmem_emulation: Some(is_emulated),
            ..InitializeConnectionResponse::default()
        };
        let pid = producer.peer.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        cx.debug(format!("producer {} connected, uid {}{pid}", producer.display_name(), producer.peer.uid));
        cx.reply(call, with_peer_pid(response.encode(), producer.peer.pid));
        if let Some(buffer) = adopted {
            producer.memory = Memory::Shared(buffer);
            producer.announce_memory(encoded::setup_tracing(None), Attachment::Absent, cx);
        }
        self.producers.add(producer);
    }

    pub(crate) fn shared_buffer_created(
        &mut self,
        client: ClientId,
        buffer: Option<Box<dyn SharedBuffer>>,
        cx: &mut Context<'_>,
    ) {
        let id = self.producers.of_client(client);
        let Some(producer) = id.and_then(|id| self.producers.get_mut(id)) else { return };
        if !matches!(producer.memory, Memory::Creating) {
            return;
        }
        match buffer {
            Some(buffer) => {
                let announcement = encoded::setup_tracing(Some(buffer.page_size_bytes()));
                producer.memory = Memory::Shared(buffer);
                producer.announce_memory(announcement, Attachment::SharedBuffer, cx);
            }
            None => {
                cx.error(format!("no shared memory for producer {}", producer.display_name()));
                cx.push(Output::CloseClient { client, reason: "no shared memory" });
                // This happens at once. Otherwise flushes would wait for the producer until its end
                // arrives, and sessions would set it up in vain.
                self.producer_disconnected(client, cx);
            }
        }
    }

    pub(crate) fn producer_disconnected(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(id) = self.producers.disconnect(client) else { return };
        self.scrape_producer(id, cx);
        if self.sessions.len() > 0 {
            let missed = self.note_missed(id, cx);
            self.departed.note(id, missed, &self.producers, cx);
        }
        // Upstream lets flushes wait for disconnected producers until they time out, but nothing
        // more can come.
        self.acknowledge_flush(id, u64::MAX, cx);
        self.tell_ended_data_sources(id, cx);
        self.drop_instances(id, None, cx);
        self.producers.remove(id, &mut self.buffers, cx);
        // Producers cannot write to these buffers any more, but they can still patch chunks in
        // them. Another producer that gets this number must not.
        for drain in self.sessions.freed.values_mut() {
            cx.charge(1);
            if drain.session.members.by_producer.remove(&id).is_none() {
                continue;
            }
            for buffer in &drain.session.buffers {
                cx.charge(1);
                if let Some(buffer) = self.buffers.get_mut(*buffer) {
                    buffer.retire_producer(id);
                }
            }
        }
        for session in self.sessions.values_mut() {
            cx.charge(1);
            session.members.by_producer.remove(&id);
            cx.charge(session.reading.sequence_ids.prune(|id| self.producers.contains(id)));
        }
    }

    /// Forgets departed producers that no session can ask for.
    pub(crate) fn forget_departed_producers(&mut self, cx: &mut Context<'_>) {
        let oldest = self.sessions.values().find_map(|session| session.departed_since);
        self.departed.forget_before(oldest.unwrap_or(u64::MAX), cx);
    }

    fn commit_data(
        &mut self,
        call: CallId,
        id: ProducerId,
        request: CommitDataRequestReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let producer = self.producers.get_mut(id);
        let Some(flush) = producer.and_then(|producer| producer.commit(request, &mut self.buffers, cx)) else {
            return cx.reject(call);
        };
        self.write_filled_buffers(cx);
        self.renew_names(cx);
        if flush != 0 {
            self.acknowledge_flush(id, flush, cx);
        }
        cx.reply_empty(call);
    }

    /// Registers a data source, and sets it up in the sessions that want it.
    fn register_data_source(
        &mut self,
        producer_id: ProducerId,
        descriptor: DataSourceDescriptorReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let Some(registration) = self.producers.register_data_source(producer_id, descriptor, cx) else { return };
        let Self { sessions, producers, config, .. } = self;
        let Some(producer) = producers.get(producer_id) else { return };
        let name = descriptor.name().unwrap_or_default();
        let mut matches = Vec::new();
        for session in sessions.values_mut() {
            cx.charge(1);
            if matches!(session.state(), State::Configured | State::Started) {
                let entries = session.wanted_entries(name, producer, &config.system, cx);
                matches.push((session.id, session.state() == State::Started, entries));
            }
        }
        for (session, is_started, entries) in matches {
            for entry in entries {
                match self.set_up(session, entry, registration, cx) {
                    SetUp::Made(instance) if is_started => self.start_instance(session, instance, cx),
                    SetUp::Made(_) => {}
                    SetUp::NotWanted => break,
                }
            }
        }
    }

    fn unregister_data_source(&mut self, producer: ProducerId, name: &[u8], cx: &mut Context<'_>) {
        cx.charge(1);
        let Some(first) = self.producers.data_sources.first_of(producer, name) else { return };
        self.drop_instances(producer, Some(name), cx);
        self.producers.unregister(first);
    }

    fn data_source_started(&mut self, producer: ProducerId, id: InstanceId, cx: &mut Context<'_>) {
        match self.find_instance(producer, id, cx) {
            Found::At(session, InstanceState::Starting) => {
                if self.sessions.get(session).is_some_and(|session| session.state() == State::Started) {
                    self.set_instance_state(session, id, InstanceState::Started);
                    self.report_all_started(session, cx);
                }
            }
            // A program that was suspended starts what has been stopped in the meantime.
            Found::At(_, InstanceState::Stopping | InstanceState::Stopped) | Found::Ended => {
                cx.debug(format!("producer {} started data source instance {} too late", producer.0, id.0));
            }
            Found::At(..) => {
                cx.warn(format!("producer {} started data source instance {} unasked", producer.0, id.0));
            }
            Found::Unknown => {
                cx.warn(format!("producer {} started unknown data source instance {}", producer.0, id.0));
            }
        }
    }

    fn data_source_stopped(&mut self, producer: ProducerId, id: InstanceId, cx: &mut Context<'_>) {
        match self.find_instance(producer, id, cx) {
            Found::At(session, InstanceState::Stopping) => {
                self.set_instance_state(session, id, InstanceState::Stopped);
                self.finish_if_all_stopped(session, cx);
            }
            // The service has waited for it in vain. The log has named the producer.
            Found::At(_, InstanceState::Stopped) | Found::Ended => {
                cx.debug(format!("producer {} stopped data source instance {} too late", producer.0, id.0));
            }
            Found::At(..) => {
                cx.warn(format!("producer {} stopped data source instance {} unasked", producer.0, id.0));
            }
            Found::Unknown => {
                cx.warn(format!("producer {} stopped unknown data source instance {}", producer.0, id.0));
            }
        }
    }

    fn find_instance(&self, producer: ProducerId, id: InstanceId, cx: &mut Context<'_>) -> Found {
        cx.charge(self.sessions.len());
        let mut found = self.sessions.values().filter_map(|session| Some((session.id, session.instances.get(id)?)));
        match found.next() {
            Some((session, instance)) if instance.producer == producer => Found::At(session, instance.state),
            None if (1..=self.sessions.last.instance).contains(&id.0) => Found::Ended,
            _ => Found::Unknown,
        }
    }
}

/// The instance of a number that a producer names.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// It belongs to this session, and has this state.
    At(SessionId, InstanceState),
    /// It existed, and its session is over.
    Ended,
    /// It never existed, or belongs to another producer.
    Unknown,
}

/// Adds the process id by which the system of this service knows a producer. In a container it
/// differs from the one that the producer itself knows. Producers that do not know the field skip
/// it.
fn with_peer_pid(response: Vec<u8>, pid: Option<i32>) -> Vec<u8> {
    let Some(pid) = pid.and_then(|pid| u64::try_from(pid).ok()).filter(|&pid| pid != 0) else { return response };
    let mut with_pid = HeapBuffer::<Message<'_>>::default();
    let mut message = with_pid.message();
    message.raw(&response);
    message.varint(PEER_PID_FIELD, pid);
    drop(message);
    with_pid.to_vec()
}
