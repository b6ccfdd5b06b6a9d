//! The producer's half of the protocol with one service, as calls and events
//! (`docs/spec/wire-protocol.md` §§8-11). It does no I/O, except that `memory.rs` makes and maps
//! the memory for chunks. It knows nothing of what instances do.

use core::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_ports::Rpc;
use esatto_ports::producer_port::method;
use esatto_protozero::{Fields, HeapBuffer, Owned};
use esatto_schema::get_async_command_response::SetupTracingReader;
use esatto_schema::{
    ActivateTriggersRequest, CommitDataRequest, GetAsyncCommandResponseReader, InitializeConnectionRequest,
    InitializeConnectionResponseReader, NotifyDataSourceStartedRequest, NotifyDataSourceStoppedRequest, PEER_PID_FIELD,
    RegisterTraceWriterRequest, UnregisterDataSourceRequest, UnregisterTraceWriterRequest,
    initialize_connection_request,
};
use esatto_shm::{Arbiter, ChunkToPatch, CommitRequest, FlushCallback, Outgoing};

use super::memory::{ChunkMemory, Offer, Transport};
use crate::connection::transport::{Call, Reply, SharedMemory, name_of};
use crate::connection::wakeups;
use crate::diagnostics;
use crate::os::Waker;
use crate::os::process_info::Pid;

/// If a service ends the stream of commands, the producer asks for another one. If this many end in
/// a row without a command, the connection is renewed.
const MAX_EMPTY_STREAMS: u32 = 8;

/// Chunks of a commit in this process: a small part of every buffer, because the service cannot let
/// half a commit wait.
const PART_BYTES: usize = 64 * 1024;

/// The identity of a producer for the service, and its way of sending data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) shm_size_hint_bytes: u32,
    pub(crate) page_size_hint_bytes: u32,
    /// How long finished chunks may wait for further ones.
    pub(crate) batch_delay: Duration,
    /// Lengths are written into chunks that were not sent yet, if the service supports it.
    pub(crate) direct_patching: bool,
}

/// The purpose of a call that has a reply.
pub(crate) enum Tag {
    Initialize,
    Commands,
    /// None: nothing depends on the answer.
    Ignored,
    /// A commit with callbacks. If it is dropped unanswered, the callbacks are dropped.
    Commit(Vec<FlushCallback>),
    /// Like `Commit`; if the service does not have the method, that counts as an answer.
    Sync(FlushCallback),
}

/// A request of a service to a producer (`docs/spec/wire-protocol.md` §9).
///
/// Trust none of the values: a service may send any buffer number, any bytes as a config, and
/// unknown ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The service knows this producer: data sources can be registered.
    Connected,
    /// Prepare an instance. From now on there is shared memory.
    Setup {
        /// The number of the instance.
        id: u64,
        /// Encoded `DataSourceConfig`.
        config: Vec<u8>,
    },
    /// Let an instance record. Services of 2018 do not set it up before.
    Start {
        /// The number of the instance.
        id: u64,
        /// Encoded `DataSourceConfig`.
        config: Vec<u8>,
    },
    /// End an instance.
    Stop {
        /// The number of the instance.
        id: u64,
    },
    /// Write the data that was kept back, then acknowledge.
    Flush {
        /// The instances.
        ids: Vec<u64>,
        /// The number to acknowledge.
        request: u64,
        /// The reason and the initiator.
        flags: u64,
    },
    /// Restart incremental state.
    ClearIncrementalState {
        /// The instances.
        ids: Vec<u64>,
    },
}

pub(crate) struct Endpoint {
    identity: Identity,
    waker: Waker,
    calls: Vec<Call<Tag>>,
    events: Vec<Event>,
    /// The connection is of no use, for this reason.
    failure: Option<String>,
    /// The reason is that the service refused the memory that it was offered.
    pub(crate) memory_refused: bool,
    emulated: bool,
    patches_directly: bool,
    /// See [`serve_itself`](Self::serve_itself).
    serves_itself: bool,
    /// Streams of commands in a row that ended without one.
    empty_streams: u32,
    transport: Option<Transport>,
    /// The time that threads may still wait for this service, left by the last connection.
    patience: Duration,
    pid: Pid,
}

impl Endpoint {
    pub(crate) fn new(identity: Identity, waker: Waker) -> Self {
        Self {
            identity,
            waker,
            calls: Vec::new(),
            events: Vec::new(),
            failure: None,
            memory_refused: false,
            emulated: false,
            patches_directly: false,
            serves_itself: false,
            empty_streams: 0,
            transport: None,
            patience: esatto_shm::Options::default().stall_budget,
            pid: Pid::default(),
        }
    }

    /// Notes that the service runs on this thread. It may let the next commit wait, so commits are
    /// small.
    pub(crate) fn serve_itself(&mut self) {
        self.serves_itself = true;
    }

    /// Returns the calls to make, in this order.
    pub(crate) fn take_calls(&mut self) -> Vec<Call<Tag>> {
        mem::take(&mut self.calls)
    }

    /// Returns the events so far, in their order.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        mem::take(&mut self.events)
    }

    /// Returns why the connection should be closed, if it should.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Returns the arbiter, once there is memory.
    pub(crate) fn arbiter(&self) -> Option<&Arc<Arbiter>> {
        self.transport.as_ref().map(|transport| &transport.arbiter)
    }

    /// Returns the number of this process on the service's system.
    pub(crate) const fn pid(&self) -> &Pid {
        &self.pid
    }

    /// Returns when something has to be sent, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.transport.as_ref().and_then(|transport| transport.schedule.deadline())
    }

    /// Makes memory before there is a connection, to offer it to the service.
    pub(crate) fn provide_memory(&mut self) -> Result<(), String> {
        self.share(ChunkMemory::provide(self.identity.shm_size_hint_bytes, self.identity.page_size_hint_bytes)?)
    }

    /// Introduces this process, because the connection is established.
    pub(crate) fn connected(&mut self) {
        let offer = self.transport.as_ref().and_then(|transport| transport.offer.as_ref());
        let (page_size, size) = match offer {
            Some(offer) => (offer.page_size_bytes(), offer.size_bytes()),
            None => (self.identity.page_size_hint_bytes, self.identity.shm_size_hint_bytes),
        };
        let request = InitializeConnectionRequest {
            shared_memory_page_size_hint_bytes: Some(page_size),
            shared_memory_size_hint_bytes: Some(size),
            producer_provided_shmem: offer.map(|_| true),
            producer_name: Some(self.identity.name.as_str().into()),
            // Lets the service fetch finished packets from threads that sleep or were killed.
            smb_scraping_mode: Some(initialize_connection_request::ProducerSMBScrapingMode::SMB_SCRAPING_ENABLED),
            sdk_version: Some(concat!("Esatto v", env!("CARGO_PKG_VERSION")).into()),
            ..Default::default()
        };
        // Without the descriptor the service refuses, as it would without memory.
        let fd = offer.and_then(Offer::descriptor);
        let (method, args) = (const { name_of::<method::InitializeConnection>() }, request.encode());
        self.calls.push(Call { method, args, tag: Some(Tag::Initialize), fd });
        self.push::<method::GetAsyncCommand>(Vec::new(), Some(Tag::Commands));
    }

    /// Handles the end of the connection and of its memory.
    pub(crate) fn disconnected(&mut self) {
        if let Some(transport) = self.transport.take() {
            self.patience = transport.arbiter.stall_budget();
            transport.arbiter.shutdown();
        }
        self.pid.forget();
        self.calls.clear();
        self.events.clear();
        self.emulated = false;
        self.patches_directly = false;
        self.empty_streams = 0;
    }

    pub(crate) fn reply(&mut self, tag: &mut Tag, reply: Reply<'_>) {
        match tag {
            Tag::Initialize => self.initialized(&reply),
            Tag::Commands => {
                let (success, has_more) = (reply.success, reply.has_more);
                if success {
                    self.empty_streams = 0;
                    self.command(reply);
                }
                if !has_more {
                    self.renew_commands();
                }
            }
            Tag::Ignored => {}
            Tag::Commit(callbacks) => mem::take(callbacks).into_iter().for_each(|done| done()),
            Tag::Sync(done) => mem::replace(done, Box::new(|| {}))(),
        }
    }

    /// Asks for another stream of commands. The stream ends, for instance, if a command does not
    /// fit into a frame. That command is lost; later ones need not be.
    fn renew_commands(&mut self) {
        self.empty_streams += 1;
        if self.empty_streams > MAX_EMPTY_STREAMS {
            self.failure = Some("the service sends no commands".into());
        } else {
            self.push::<method::GetAsyncCommand>(Vec::new(), Some(Tag::Commands));
        }
    }

    /// Handles a call whose method the service does not have.
    pub(crate) fn rejected(&mut self, mut tag: Tag) {
        if matches!(tag, Tag::Commands) {
            // Asking again would not help.
            return;
        }
        let reply = Reply { success: false, has_more: false, body: &[], memory: &mut None };
        self.reply(&mut tag, reply);
    }

    /// Sends what threads have queued since the last call. Without shared memory, nothing new is
    /// sent over a congested connection. Threads then run out of chunks, just as if a service were
    /// slow to empty shared memory.
    pub(crate) fn pump(&mut self, is_congested: bool, now: Instant) {
        let transport = self.transport.as_ref().filter(|_| !(self.emulated && is_congested));
        if transport.is_some_and(|transport| transport.schedule.take_due(now)) {
            self.commit();
        }
    }

    /// Commits everything that is complete, and runs `done` when the service has it. Without a
    /// session, or if the connection breaks, `done` is dropped. If it `is_last`, losses are told
    /// that no packet can tell any more.
    pub(crate) fn flush(&mut self, done: FlushCallback, is_last: bool) {
        if let Some(transport) = &self.transport {
            // Threads may end in a moment, together with the process. A service that shares their
            // memory looks for the unfinished chunks. Another service must be told of them.
            transport.arbiter.queue_unfinished();
            if is_last {
                transport.arbiter.queue_last_marks();
            }
            self.commit();
            // Calls are handled in order: the reply to an empty commit confirms all earlier ones.
            self.push::<method::CommitData>(Vec::new(), Some(Tag::Commit(vec![done])));
        }
    }

    /// Commits everything that is complete, and acknowledges flush requests up to this one. The
    /// service scrapes the chunks that threads are still writing.
    pub(crate) fn acknowledge_flush(&mut self, request: u64) {
        match &self.transport {
            Some(transport) => transport.arbiter.acknowledge_flush(request),
            None => {
                let request = CommitDataRequest { flush_request_id: Some(request), ..Default::default() };
                self.call::<method::CommitData>(&request, None);
            }
        }
        self.commit();
    }

    /// Registers a data source by its encoded descriptor.
    pub(crate) fn register(&mut self, descriptor: &[u8]) {
        self.push::<method::RegisterDataSource>(wrap(descriptor), Some(Tag::Ignored));
    }

    /// Updates the descriptor of a data source.
    pub(crate) fn update(&mut self, descriptor: &[u8]) {
        self.push::<method::UpdateDataSource>(wrap(descriptor), Some(Tag::Ignored));
    }

    /// Unregisters all data sources with a name.
    pub(crate) fn unregister(&mut self, name: &str) {
        let request = UnregisterDataSourceRequest { data_source_name: Some(name.into()), ..Default::default() };
        self.call::<method::UnregisterDataSource>(&request, None);
    }

    /// Tells the service that an instance records.
    pub(crate) fn notify_started(&mut self, id: u64) {
        let request = NotifyDataSourceStartedRequest { data_source_id: Some(id), ..Default::default() };
        self.call::<method::NotifyDataSourceStarted>(&request, None);
    }

    /// Tells the service that an instance has ended.
    pub(crate) fn notify_stopped(&mut self, id: u64) {
        let request = NotifyDataSourceStoppedRequest { data_source_id: Some(id), ..Default::default() };
        self.call::<method::NotifyDataSourceStopped>(&request, None);
    }

    /// Activates triggers: names of happenings that sessions may wait for.
    pub(crate) fn activate_triggers(&mut self, names: &[String]) {
        let trigger_names = names.iter().map(|name| name.as_str().into()).collect();
        let request = ActivateTriggersRequest { trigger_names, ..Default::default() };
        self.call::<method::ActivateTriggers>(&request, None);
    }

    /// Runs `done` when the service has handled everything before.
    pub(crate) fn sync(&mut self, done: FlushCallback) {
        self.push::<method::Sync>(Vec::new(), Some(Tag::Sync(done)));
    }

    fn initialized(&mut self, reply: &Reply<'_>) {
        if !reply.success {
            diagnostics::say_once(
                "not recorded by the tracing service: it refused this program; perhaps it is in lockdown mode and \
                 serves only programs of its own user (`esatto list` tells), or has too many programs"
                    .to_owned(),
            );
            self.failure = Some("the service refused this producer".into());
            return;
        }
        let response = InitializeConnectionResponseReader::new(reply.body);
        let adopted = response.using_shmem_provided_by_producer().unwrap_or(false);
        if let Some(pid) = peer_pid(reply.body) {
            self.pid.set(pid);
        }
        self.emulated = response.use_shmem_emulation().unwrap_or(false);
        self.patches_directly = (self.identity.direct_patching || self.serves_itself)
            && response.direct_smb_patching_supported().unwrap_or(false);
        if self.transport.is_some() && !adopted {
            self.memory_refused = true;
            self.failure = Some("the service does not take the shared memory that it was offered".into());
            return;
        }
        self.events.push(Event::Connected);
    }

    fn command(&mut self, reply: Reply<'_>) {
        let command = GetAsyncCommandResponseReader::new(reply.body);
        if let Some(setup) = command.setup_tracing() {
            self.setup_tracing(setup, reply.memory.take());
        } else if let Some(setup) = command.setup_data_source() {
            let config = setup.config().map(|config| config.as_bytes().to_vec()).unwrap_or_default();
            self.events.push(Event::Setup { id: setup.new_instance_id().unwrap_or(0), config });
        } else if let Some(start) = command.start_data_source() {
            let config = start.config().map(|config| config.as_bytes().to_vec()).unwrap_or_default();
            self.events.push(Event::Start { id: start.new_instance_id().unwrap_or(0), config });
        } else if let Some(stop) = command.stop_data_source() {
            self.events.push(Event::Stop { id: stop.instance_id().unwrap_or(0) });
        } else if let Some(flush) = command.flush() {
            self.events.push(Event::Flush {
                ids: flush.data_source_ids().collect(),
                request: flush.request_id().unwrap_or(0),
                flags: flush.flags().unwrap_or(0),
            });
        } else if let Some(clear) = command.clear_incremental_state() {
            self.events.push(Event::ClearIncrementalState { ids: clear.data_source_ids().collect() });
        }
    }

    fn setup_tracing(&mut self, setup: SetupTracingReader<'_>, memory: Option<SharedMemory>) {
        if self.transport.is_some() {
            return;
        }
        let shared = ChunkMemory::open(setup, memory, self.emulated).and_then(|memory| self.share(memory));
        if let Err(why) = shared {
            self.failure = Some(why);
        }
    }

    fn share(&mut self, memory: ChunkMemory) -> Result<(), String> {
        let mut options = esatto_shm::Options::default();
        options.emulation = self.emulated;
        options.self_scraping = self.emulated;
        options.batch_delay = self.identity.batch_delay;
        options.batch_parts = wakeups::PARTS;
        options.direct_patching = self.patches_directly;
        options.stall_budget = self.patience;
        options.serves_itself = self.serves_itself;
        self.transport = Some(memory.share(options, self.waker.clone())?);
        Ok(())
    }

    /// Commits everything that is complete: makes the calls that the arbiter wants.
    pub(crate) fn commit(&mut self) {
        let Some(arbiter) = self.arbiter().cloned() else { return };
        let chunks = match self.serves_itself {
            true => (PART_BYTES / arbiter.page_size().bytes()).max(1),
            false => usize::MAX,
        };
        let mut buffer = HeapBuffer::new();
        while let Some(outgoing) = arbiter.poll_outgoing() {
            match outgoing {
                Outgoing::Commit(request) => {
                    wakeups::note_commit();
                    for part in parts(request, chunks) {
                        buffer.clear();
                        part.write_to(&mut buffer.message());
                        let tag = (!part.callbacks.is_empty()).then_some(Tag::Commit(part.callbacks));
                        self.push::<method::CommitData>(buffer.to_vec(), tag);
                    }
                }
                Outgoing::RegisterWriter { writer_id, target_buffer } => {
                    let request = RegisterTraceWriterRequest {
                        trace_writer_id: Some(u32::from(writer_id)),
                        target_buffer: Some(u32::from(target_buffer)),
                        ..Default::default()
                    };
                    self.call::<method::RegisterTraceWriter>(&request, None);
                }
                Outgoing::UnregisterWriter { writer_id } => {
                    let request = UnregisterTraceWriterRequest {
                        trace_writer_id: Some(u32::from(writer_id)),
                        ..Default::default()
                    };
                    self.call::<method::UnregisterTraceWriter>(&request, None);
                }
            }
        }
    }

    fn call<M: Rpc>(&mut self, request: &M::Request, tag: Option<Tag>) {
        self.push::<M>(request.encode(), tag);
    }

    /// Makes a call with an encoded request.
    fn push<M: Rpc>(&mut self, args: Vec<u8>, tag: Option<Tag>) {
        self.push_call(const { name_of::<M>() }, args, tag);
    }

    #[inline(never)]
    fn push_call(&mut self, method: &'static str, args: Vec<u8>, tag: Option<Tag>) {
        self.calls.push(Call { method, args, tag, fd: None });
    }
}

/// Divides a request into those of so many chunks. The last one has the rest of the request.
///
/// Patches for chunks that were sent before come first, because until they arrive, the service can
/// read nothing of what follows those chunks. Other patches come with their chunks.
fn parts(mut request: CommitRequest, chunks: usize) -> Vec<CommitRequest> {
    if request.moves.len() <= chunks {
        return vec![request];
    }
    let moves = mem::take(&mut request.moves);
    let mut patches = mem::take(&mut request.patches);
    let mut parts: Vec<CommitRequest> = Vec::new();
    for moves in moves.chunks(chunks) {
        let is_here = |patch: &ChunkToPatch| {
            moves.iter().any(|chunk| (chunk.writer_id, chunk.chunk_id) == (patch.writer_id, patch.chunk_id))
        };
        let (here, elsewhere) = mem::take(&mut patches).into_iter().partition(is_here);
        patches = elsewhere;
        parts.push(CommitRequest { moves: moves.to_vec(), patches: here, ..Default::default() });
    }
    if let Some(last) = parts.last_mut() {
        (last.flush_request_id, last.callbacks) = (request.flush_request_id, mem::take(&mut request.callbacks));
    }
    if !patches.is_empty() {
        parts.insert(0, CommitRequest { patches, ..Default::default() });
    }
    parts
}

/// Makes a request whose only field, number 1, is a descriptor.
fn wrap(descriptor: &[u8]) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    buffer.message().bytes(1, descriptor);
    buffer.to_vec()
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.identity.name)
            .field("emulated", &self.emulated)
            .finish_non_exhaustive()
    }
}

/// Returns the number of this process on the service's system, if the response contains it.
fn peer_pid(response: &[u8]) -> Option<u32> {
    let field = Fields::new(response).find(|field| field.id == PEER_PID_FIELD)?;
    u32::try_from(field.as_u64()).ok().filter(|&pid| pid != 0 && i32::try_from(pid).is_ok())
}

#[cfg(all(test, any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod tests {
    use esatto_shm::ChunkToMove;

    use super::*;

    #[test]
    fn a_service_that_hangs_up_gets_no_more_waiting_time() {
        let left = Duration::from_secs(3);
        let mut endpoint = Endpoint::new(Identity::default(), Waker::new().unwrap());
        endpoint.patience = left;
        for _ in 0..2 {
            endpoint.provide_memory().unwrap();
            assert_eq!(endpoint.arbiter().unwrap().stall_budget(), left);
            endpoint.disconnected();
            assert_eq!(endpoint.patience, left);
        }
    }

    #[test]
    fn patches_come_with_their_chunks_or_first() {
        let chunk = |chunk_id| ChunkToMove {
            page: chunk_id,
            chunk: 0,
            target_buffer: 1,
            writer_id: 1,
            chunk_id,
            data: None,
            incomplete: false,
        };
        let patch = |chunk_id| ChunkToPatch {
            target_buffer: 1,
            writer_id: 1,
            chunk_id,
            patches: Vec::new(),
            has_more_patches: false,
        };
        let request = CommitRequest {
            moves: (5..10).map(chunk).collect(),
            patches: vec![patch(8), patch(4), patch(5)],
            flush_request_id: 7,
            callbacks: Vec::new(),
        };
        let parts: Vec<_> = parts(request, 2)
            .into_iter()
            .map(|part| {
                let moves: Vec<_> = part.moves.iter().map(|chunk| chunk.chunk_id).collect();
                let patches: Vec<_> = part.patches.iter().map(|patch| patch.chunk_id).collect();
                (moves, patches, part.flush_request_id)
            })
            .collect();
        let expected = [(vec![], vec![4], 0), (vec![5, 6], vec![5], 0), (vec![7, 8], vec![8], 0), (vec![9], vec![], 7)];
        assert_eq!(parts, expected);
    }
}
