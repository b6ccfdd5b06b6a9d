//! The producer's half of the protocol with one service: registration, instances, commits
//! (`docs/spec/wire-protocol.md` §§8-11, `docs/spec/client-library.md` §6). Knows nothing of sockets.

use core::mem;
use std::sync::Arc;

use esatto_map::Map;
use esatto_protozero::Owned;
use esatto_schema::get_async_command_response::{SetupTracingReader, StartDataSourceReader};
use esatto_schema::{
    CommitDataRequest, DataSourceConfigReader, DataSourceDescriptor, GetAsyncCommandResponseReader,
    InitializeConnectionRequest, InitializeConnectionResponseReader, NotifyDataSourceStartedRequest,
    NotifyDataSourceStoppedRequest, RegisterDataSourceRequest, RegisterTraceWriterRequest, TrackEventCategory,
    TrackEventConfig, TrackEventDescriptor, UnregisterTraceWriterRequest, UpdateDataSourceRequest, data_source_config,
    initialize_connection_request, producer_port::Method,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Arbiter, ExhaustedPolicy, FlushCallback, MappedRegion, Memory, PrivateRegion};

use super::Waker;
use super::call::{Call, Reply, SharedMemory};
use super::sink::{Outgoing, Sink};
use crate::instance::{self, Instance, Options};
use crate::{ids, registry};

/// Name of the data source of track events.
const DATA_SOURCE: &str = "track_event";

/// Size of the memory in which chunks are made for a service that cannot share it (`docs/spec/shared-memory.md` §17).
const EMULATED_MEMORY_BYTES: usize = 1 << 20;

/// What a producer tells the service about itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) shm_size_hint_bytes: u32,
    pub(crate) page_size_hint_bytes: u32,
}

/// Why replies are waited for.
pub(crate) enum Tag {
    Initialize,
    Commands,
    Register,
    /// A commit that somebody waits for. If it is dropped unanswered, so are those who wait.
    Commit(Vec<FlushCallback>),
}

pub(crate) struct Producer {
    identity: Identity,
    waker: Waker,
    calls: Vec<Call<Tag>>,
    /// The connection is of no use, for this reason.
    failure: Option<String>,
    /// Version of the list of categories that the service knows; `None` before registration.
    advertised: Option<u64>,
    descriptor_id: u64,
    emulated: bool,
    transport: Option<Transport>,
    /// By the service's id.
    instances: Map<u64, Active>,
}

/// The way of the data.
#[derive(Debug)]
struct Transport {
    arbiter: Arc<Arbiter>,
    sink: Arc<Sink>,
}

/// An instance that the service has set up.
#[derive(Debug)]
struct Active {
    config: Arc<TrackEventConfig>,
    target_buffer: u16,
    policy: ExhaustedPolicy,
    /// Its slot in the instance table, once started.
    slot: Option<usize>,
}

impl Producer {
    pub(crate) fn new(identity: Identity, waker: Waker) -> Self {
        Self {
            identity,
            waker,
            calls: Vec::new(),
            failure: None,
            advertised: None,
            descriptor_id: ids::random().max(1),
            emulated: false,
            transport: None,
            instances: Map::new(),
        }
    }

    /// Calls to make, in this order.
    pub(crate) fn take_calls(&mut self) -> Vec<Call<Tag>> {
        mem::take(&mut self.calls)
    }

    /// Why the connection should be closed, if it should.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// The connection stands: introduce this process.
    pub(crate) fn connected(&mut self) {
        let request = InitializeConnectionRequest {
            shared_memory_page_size_hint_bytes: Some(self.identity.page_size_hint_bytes),
            shared_memory_size_hint_bytes: Some(self.identity.shm_size_hint_bytes),
            producer_name: Some(self.identity.name.as_str().into()),
            // Lets the service fetch finished packets from threads that sleep or were killed.
            smb_scraping_mode: Some(initialize_connection_request::ProducerSMBScrapingMode::SMB_SCRAPING_ENABLED),
            sdk_version: Some(concat!("Esatto v", env!("CARGO_PKG_VERSION")).into()),
            ..Default::default()
        };
        self.call(Method::InitializeConnection, &request, Some(Tag::Initialize));
        self.push(Method::GetAsyncCommand, Vec::new(), Some(Tag::Commands));
    }

    /// The connection is gone, and with it all instances.
    pub(crate) fn disconnected(&mut self) {
        for (_, active) in mem::take(&mut self.instances) {
            active.stop();
        }
        if let Some(transport) = self.transport.take() {
            transport.arbiter.shutdown();
        }
        self.calls.clear();
        self.advertised = None;
    }

    pub(crate) fn reply(&mut self, tag: &mut Tag, reply: Reply<'_>) {
        match tag {
            Tag::Initialize => self.initialized(&reply),
            Tag::Commands if reply.success => self.command(reply),
            Tag::Commands | Tag::Register => {}
            Tag::Commit(callbacks) => mem::take(callbacks).into_iter().for_each(|done| done()),
        }
    }

    /// Sends what threads have queued since the last call. Without shared memory nothing new is sent over a link that is
    /// congested: then threads run out of chunks, as they do if a service is slow to take them out of shared memory.
    pub(crate) fn pump(&mut self, is_congested: bool) {
        if let Some(transport) = self.transport.as_ref().filter(|_| !(self.emulated && is_congested)) {
            transport.arbiter.send_pending();
        }
        self.send_outgoing();
        self.advertise();
    }

    /// Commits everything that is complete, and runs `done` when the service has it. Without a session, or if the connection
    /// breaks, `done` is dropped.
    pub(crate) fn flush(&mut self, done: FlushCallback) {
        if let Some(transport) = &self.transport {
            // Threads may be gone in a moment, with the process: a service that shares their memory looks for what they
            // were writing, another one has to be told.
            transport.arbiter.send_unfinished();
            self.send_outgoing();
            // Calls are handled in order: the reply to an empty commit tells that those before it were.
            self.push(Method::CommitData, Vec::new(), Some(Tag::Commit(vec![done])));
        }
    }

    fn initialized(&mut self, reply: &Reply<'_>) {
        if !reply.success {
            self.failure = Some("the service refused this producer".into());
            return;
        }
        let response = InitializeConnectionResponseReader::new(reply.body);
        self.emulated = response.use_shmem_emulation().unwrap_or(false);
        let version = registry::version();
        self.advertised = Some(version);
        let request = RegisterDataSourceRequest {
            data_source_descriptor: Some(Box::new(self.descriptor())),
            ..Default::default()
        };
        self.call(Method::RegisterDataSource, &request, Some(Tag::Register));
    }

    /// Renews the advertised list of categories.
    fn advertise(&mut self) {
        let version = registry::version();
        if self.advertised.is_some_and(|advertised| advertised != version) {
            self.advertised = Some(version);
            let request = UpdateDataSourceRequest {
                data_source_descriptor: Some(Box::new(self.descriptor())),
                ..Default::default()
            };
            self.call(Method::UpdateDataSource, &request, Some(Tag::Register));
        }
    }

    fn descriptor(&self) -> DataSourceDescriptor {
        let mut categories = Vec::new();
        registry::for_each(|category| {
            let description = category.description();
            categories.push(TrackEventCategory {
                name: Some(category.name().into()),
                description: (!description.is_empty()).then(|| description.into()),
                tags: category.tags().iter().map(|&tag| tag.into()).collect(),
                ..Default::default()
            });
        });
        DataSourceDescriptor {
            name: Some(DATA_SOURCE.into()),
            id: Some(self.descriptor_id),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            handles_incremental_state_clear: Some(true),
            track_event_descriptor: Some(TrackEventDescriptor {
                available_categories: categories,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn command(&mut self, reply: Reply<'_>) {
        let command = GetAsyncCommandResponseReader::new(reply.body);
        if let Some(setup) = command.setup_tracing() {
            self.setup_tracing(setup, reply.memory.take());
        } else if let Some(setup) = command.setup_data_source() {
            if let (Some(id), Some(config)) = (setup.new_instance_id(), setup.config()) {
                self.setup_data_source(id, config);
            }
        } else if let Some(start) = command.start_data_source() {
            self.start_data_source(start);
        } else if let Some(stop) = command.stop_data_source() {
            self.stop_data_source(stop.instance_id().unwrap_or(0));
        } else if let Some(flush) = command.flush() {
            self.service_flush(flush.request_id().unwrap_or(0));
        } else if let Some(clear) = command.clear_incremental_state() {
            for id in clear.data_source_ids() {
                if let Some(slot) = self.instances.get(&id).and_then(|active| active.slot) {
                    instance::clear_incremental_state(slot);
                }
            }
        }
    }

    fn setup_tracing(&mut self, setup: SetupTracingReader<'_>, memory: Option<SharedMemory>) {
        if self.transport.is_some() {
            return;
        }
        match self.open_memory(setup, memory) {
            Ok((region, page_size)) => {
                let sink = Arc::new(Sink::new(self.waker.clone()));
                let mut options = esatto_shm::Options::default();
                options.batch_delay = super::pace::COLLECTION_INTERVAL;
                options.batch_parts = super::pace::PARTS;
                options.emulation = self.emulated;
                options.self_scraping = self.emulated;
                match Arbiter::with_options(region, page_size, sink.clone(), options) {
                    Ok(arbiter) => self.transport = Some(Transport { arbiter, sink }),
                    Err(error) => self.failure = Some(error.to_string()),
                }
            }
            Err(why) => self.failure = Some(why),
        }
    }

    fn open_memory(
        &self,
        setup: SetupTracingReader<'_>,
        memory: Option<SharedMemory>,
    ) -> Result<(Arc<dyn Memory>, PageSize), String> {
        let kib = setup.shared_buffer_page_size_kb().unwrap_or(0);
        let page_size = usize::try_from(kib)
            .ok()
            .and_then(|kib| kib.checked_mul(1024))
            .and_then(|bytes| PageSize::new(bytes).ok())
            .ok_or_else(|| format!("the service wants shared memory pages of {kib} KiB"))?;
        match memory.filter(|_| !self.emulated) {
            Some(SharedMemory::Region(region)) => Ok((region, page_size)),
            Some(SharedMemory::Fd(fd)) => {
                let region = MappedRegion::from_service(fd).map_err(|e| e.to_string())?;
                Ok((Arc::new(region), page_size))
            }
            None if self.emulated => Ok((Arc::new(PrivateRegion::new(EMULATED_MEMORY_BYTES)), page_size)),
            None => Err("the service sent no shared memory".into()),
        }
    }

    fn setup_data_source(&mut self, id: u64, config: DataSourceConfigReader<'_>) {
        if config.name() != Some(DATA_SOURCE.as_bytes()) {
            return;
        }
        use data_source_config::BufferExhaustedPolicy as Policy;
        let policy = match config.buffer_exhausted_policy().unwrap_or_default() {
            // A library does not abort its host: both stalling policies end in dropping.
            Policy::BUFFER_EXHAUSTED_STALL_THEN_ABORT | Policy::BUFFER_EXHAUSTED_STALL_THEN_DROP => {
                ExhaustedPolicy::StallThenDrop
            }
            _ => ExhaustedPolicy::Drop,
        };
        let track_events = config.track_event_config().map(|c| c.as_bytes()).unwrap_or_default();
        let active = Active {
            // What can be read of a malformed configuration is used.
            config: Arc::new(TrackEventConfig::decode(track_events).unwrap_or_default()),
            target_buffer: config.target_buffer().and_then(|b| u16::try_from(b).ok()).unwrap_or(0),
            policy,
            slot: None,
        };
        self.instances.insert(id, active);
    }

    fn start_data_source(&mut self, start: StartDataSourceReader<'_>) {
        let Some(id) = start.new_instance_id() else { return };
        if !self.instances.contains_key(&id) {
            // Services of 2018 start without a set-up.
            if let Some(config) = start.config() {
                self.setup_data_source(id, config);
            }
        }
        if let (Some(active), Some(transport)) = (self.instances.get_mut(&id), &self.transport) {
            active.start(&transport.arbiter);
        }
        let request = NotifyDataSourceStartedRequest { data_source_id: Some(id), ..Default::default() };
        self.call(Method::NotifyDataSourceStarted, &request, None);
    }

    fn stop_data_source(&mut self, id: u64) {
        if let Some(active) = self.instances.remove(&id) {
            active.stop();
        }
        if let Some(transport) = &self.transport {
            crate::thread::flush_all();
            transport.arbiter.flush_pending(None);
        }
        self.send_outgoing();
        let request = NotifyDataSourceStoppedRequest { data_source_id: Some(id), ..Default::default() };
        self.call(Method::NotifyDataSourceStopped, &request, None);
    }

    /// Commits and acknowledges. Chunks of threads that are in a trace point just now are scraped by the service.
    fn service_flush(&mut self, request_id: u64) {
        crate::thread::flush_all();
        match &self.transport {
            Some(transport) => transport.arbiter.flush_pending(Some(request_id)),
            None => {
                let request = CommitDataRequest { flush_request_id: Some(request_id), ..Default::default() };
                self.call(Method::CommitData, &request, None);
            }
        }
        self.send_outgoing();
    }

    fn send_outgoing(&mut self) {
        let Some(transport) = &self.transport else { return };
        for outgoing in transport.sink.take() {
            match outgoing {
                Outgoing::Commit { args, callbacks } => {
                    let tag = (!callbacks.is_empty()).then_some(Tag::Commit(callbacks));
                    self.push(Method::CommitData, args, tag);
                }
                Outgoing::RegisterWriter { writer_id, target_buffer } => {
                    let request = RegisterTraceWriterRequest {
                        trace_writer_id: Some(u32::from(writer_id)),
                        target_buffer: Some(u32::from(target_buffer)),
                        ..Default::default()
                    };
                    self.call(Method::RegisterTraceWriter, &request, None);
                }
                Outgoing::UnregisterWriter { writer_id } => {
                    let request = UnregisterTraceWriterRequest {
                        trace_writer_id: Some(u32::from(writer_id)),
                        ..Default::default()
                    };
                    self.call(Method::UnregisterTraceWriter, &request, None);
                }
            }
        }
    }

    fn call(&mut self, method: Method, request: &impl Owned, tag: Option<Tag>) {
        self.push(method, request.encode(), tag);
    }

    fn push(&mut self, method: Method, args: Vec<u8>, tag: Option<Tag>) {
        self.calls.push(Call { method: method.name(), args, tag, fd: None });
    }
}

impl Active {
    fn start(&mut self, arbiter: &Arc<Arbiter>) {
        if self.slot.is_some() || self.target_buffer == 0 {
            return;
        }
        let instance = Instance {
            arbiter: Arc::clone(arbiter),
            target_buffer: self.target_buffer,
            policy: self.policy,
            options: Options::new(&self.config),
        };
        // With all slots taken the instance exists for the service only and records nothing.
        self.slot = instance::occupy(instance);
        if let Some(slot) = self.slot {
            registry::enable(slot, Arc::clone(&self.config));
        }
    }

    fn stop(self) {
        if let Some(slot) = self.slot {
            registry::disable(slot);
            instance::vacate(slot);
        }
    }
}
