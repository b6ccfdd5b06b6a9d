//! An owner of a service for tests. Its clocks, timers, files and shared memory are also values.

mod fake_memory;
mod fake_producer;

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port;
use std::collections::{BTreeMap, HashMap, VecDeque};

use esatto_protozero::Owned;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    DataSourceConfig, EnableTracingRequest, EnableTracingResponse, ReadBuffersResponse, TraceConfig, TracePacketReader,
};
use esatto_service::{
    CallId, ClientId, ConsumerCall, FileId, Input, LogLevel, Now, Output, Outputs, Peer, PriorityBoost, Reply, Service,
    ServiceConfig, SharedBuffer, SystemFacts, TimerClock, TimerId,
};

pub(crate) use fake_memory::FakeMemory;
pub(crate) use fake_producer::{FakeProducer, chunk_payload};

pub(crate) const SERVICE_UID: i32 = 7;

/// A service, its owner, and what its clients received.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) now: Now,
    out: Outputs,
    timers: BTreeMap<TimerId, (TimerClock, u64)>,
    pub(crate) replies: HashMap<CallId, VecDeque<Reply>>,
    pub(crate) rejected: Vec<CallId>,
    pub(crate) memories: HashMap<ClientId, FakeMemory>,
    /// Page size announced with each shared memory that was made.
    pub(crate) created: Vec<(ClientId, usize, usize)>,
    pub(crate) files: HashMap<FileId, Vec<u8>>,
    pub(crate) closed_files: Vec<FileId>,
    pub(crate) synced_files: Vec<FileId>,
    /// Copies of files are reported only by `finish_slow_work`.
    pub(crate) copies_are_slow: bool,
    /// Created files and changes of priority are reported only by `finish_slow_work`.
    pub(crate) opening_is_slow: bool,
    /// Batches of files are written only by `finish_slow_work`.
    pub(crate) writes_are_slow: bool,
    slow: Vec<Slow>,
    pub(crate) priority: Option<PriorityBoost>,
    /// Why the priority cannot be changed.
    pub(crate) priority_error: Option<String>,
    /// Why writing or creating files fails.
    pub(crate) file_error: Option<String>,
    pub(crate) closed_clients: Vec<ClientId>,
    pub(crate) warnings: Vec<String>,
    /// Lines about the life of sessions.
    pub(crate) log: Vec<String>,
    pub(crate) memory_is_available: bool,
    /// Clients are never ready for more.
    pub(crate) is_slow: bool,
    /// Handed out instead of the next memory that is asked for.
    pub(crate) prepared: Option<Box<dyn SharedBuffer>>,
    next: u64,
}

/// Work that the owner has done but not reported.
#[derive(Debug)]
enum Slow {
    Written(FileId, Result<(), String>),
    Opened(FileId, Result<(), String>),
    Copied(FileId, Result<(), String>),
    Priority(u64, Result<(), String>),
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_seed(1)
    }

    pub(crate) fn with_seed(seed: u8) -> Self {
        Self::with(seed, SystemFacts::default())
    }

    /// A service on a machine of this name.
    pub(crate) fn of_machine(machine_name: &str) -> Self {
        Self::with(1, SystemFacts { machine_name: machine_name.to_owned(), ..SystemFacts::default() })
    }

    fn with(seed: u8, system: SystemFacts) -> Self {
        let config = ServiceConfig { uid: SERVICE_UID, version: "Esatto test".to_owned(), system, seed: [seed; 32] };
        let mut now = Now::default();
        advance(&mut now, 1_000_000_000_000);
        now.realtime_ns += 5_000_000_000_000;
        Self {
            service: Service::new(config),
            now,
            out: Outputs::new(),
            timers: BTreeMap::new(),
            replies: HashMap::new(),
            rejected: Vec::new(),
            memories: HashMap::new(),
            created: Vec::new(),
            files: HashMap::new(),
            closed_files: Vec::new(),
            synced_files: Vec::new(),
            copies_are_slow: false,
            opening_is_slow: false,
            writes_are_slow: false,
            slow: Vec::new(),
            priority: None,
            priority_error: None,
            file_error: None,
            closed_clients: Vec::new(),
            warnings: Vec::new(),
            log: Vec::new(),
            memory_is_available: true,
            is_slow: false,
            prepared: None,
            next: 0,
        }
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Feeds an input to the service, carries out its outputs, and feeds their results.
    pub(crate) fn feed(&mut self, input: Input<'_>) {
        self.service.handle(&self.now, input, &mut self.out);
        while let Some(output) = self.out.pop() {
            if let Some(input) = self.carry_out(output) {
                self.service.handle(&self.now, input, &mut self.out);
            }
        }
    }

    fn carry_out(&mut self, output: Output) -> Option<Input<'static>> {
        match output {
            Output::Reply(reply) => {
                assert!(!self.rejected.contains(&reply.call), "a rejected call is answered: {reply:?}");
                let replies = self.replies.entry(reply.call).or_default();
                assert!(replies.back().is_none_or(|last| last.has_more), "an ended call is answered: {reply:?}");
                replies.push_back(reply);
            }
            Output::Reject(call) => {
                assert!(!self.rejected.contains(&call), "rejected twice");
                self.rejected.push(call);
            }
            Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                self.created.push((client, size_bytes, page_size_bytes));
                if let Some(prepared) = self.prepared.take() {
                    assert_eq!((prepared.size_bytes(), prepared.page_size_bytes()), (size_bytes, page_size_bytes));
                    return Some(Input::SharedBufferCreated { client, buffer: Some(prepared) });
                }
                let memory = FakeMemory::new(size_bytes, page_size_bytes);
                self.memories.insert(client, memory.clone());
                let buffer = self.memory_is_available.then(|| Box::new(memory) as Box<dyn SharedBuffer>);
                return Some(Input::SharedBufferCreated { client, buffer });
            }
            Output::CloseClient { client, .. } => self.closed_clients.push(client),
            Output::AwaitReady(client) => return (!self.is_slow).then_some(Input::Ready(client)),
            Output::SetTimer { timer, clock, at_ns } => {
                assert!(self.timers.insert(timer, (clock, at_ns)).is_none(), "a timer is set twice");
            }
            Output::CancelTimer(timer) => {
                self.timers.remove(&timer);
            }
            Output::AdoptFile { file, call: _ } => {
                self.files.insert(file, Vec::new());
            }
            Output::CreateFile { file, .. } => {
                let result = self.file_error.clone().map_or(Ok(()), Err);
                if result.is_ok() {
                    self.files.insert(file, Vec::new());
                }
                if self.opening_is_slow {
                    self.slow.push(Slow::Opened(file, result));
                    return None;
                }
                return Some(Input::FileOpened { file, result });
            }
            Output::WriteFile { file, bytes } => {
                assert!(!self.closed_files.contains(&file), "a closed file is written to");
                let result = self.file_error.clone().map_or(Ok(()), Err);
                if result.is_ok() {
                    self.files.get_mut(&file).expect("a file that exists").extend_from_slice(&bytes);
                }
                if self.writes_are_slow {
                    self.slow.push(Slow::Written(file, result));
                    return None;
                }
                return Some(Input::FileWritten { file, result });
            }
            Output::SetPriority { change, boost } => {
                let result = self.priority_error.clone().map_or(Ok(()), Err);
                if result.is_ok() {
                    self.priority = boost;
                }
                if self.opening_is_slow {
                    self.slow.push(Slow::Priority(change, result));
                    return None;
                }
                return Some(Input::PrioritySet { change, result });
            }
            Output::CopyFile { from, to } => {
                assert!(!self.closed_files.contains(&to), "a closed file is copied to");
                let result = self.file_error.clone().map_or(Ok(()), Err);
                if result.is_ok() {
                    let copied = self.files[&from].clone();
                    self.files.get_mut(&to).expect("a file that exists").extend_from_slice(&copied);
                }
                if self.copies_are_slow {
                    self.slow.push(Slow::Copied(to, result));
                    return None;
                }
                return Some(Input::FileCopied { file: to, result });
            }
            Output::SyncFile(file) => self.synced_files.push(file),
            Output::CloseFile(file) => {
                assert!(self.files.contains_key(&file) && !self.closed_files.contains(&file));
                self.closed_files.push(file);
            }
            Output::Log { level, text } => match level {
                LogLevel::Debug => {}
                LogLevel::Info => self.log.push(text),
                LogLevel::Warning | LogLevel::Error => self.warnings.push(text),
            },
            other => panic!("what is {other:?}?"),
        }
        None
    }

    pub(crate) fn finish_slow_work(&mut self) {
        for work in core::mem::take(&mut self.slow) {
            self.feed(match work {
                Slow::Opened(file, result) => Input::FileOpened { file, result },
                Slow::Written(file, result) => Input::FileWritten { file, result },
                Slow::Copied(file, result) => Input::FileCopied { file, result },
                Slow::Priority(change, result) => Input::PrioritySet { change, result },
            });
        }
    }

    /// Lets time go by; timers fire at their time.
    pub(crate) fn advance_ms(&mut self, ms: u64) {
        let end = self.now.monotonic_ns + ms * 1_000_000;
        while self.next_timer().is_some_and(|(at, _)| at <= end) {
            self.expire_next();
        }
        let by = end - self.now.monotonic_ns;
        advance(&mut self.now, by);
    }

    fn next_timer(&self) -> Option<(u64, TimerId)> {
        self.timers.iter().map(|(&id, &(_, at))| (at, id)).min()
    }

    /// Waits for the next timer; whether there is one.
    pub(crate) fn expire_next(&mut self) -> bool {
        let Some((at, timer)) = self.next_timer() else { return false };
        self.timers.remove(&timer);
        let by = at.saturating_sub(self.now.monotonic_ns);
        advance(&mut self.now, by);
        self.feed(Input::TimerExpired(timer));
        true
    }

    /// Fires one timer that is due now; whether there is one.
    pub(crate) fn expire_one(&mut self) -> bool {
        self.next_timer().is_some_and(|(at, _)| at <= self.now.monotonic_ns) && self.expire_next()
    }

    /// When the timers expire.
    pub(crate) fn deadlines(&self) -> Vec<(TimerClock, u64)> {
        self.timers.values().copied().collect()
    }

    pub(crate) fn timers(&self) -> usize {
        self.timers.len()
    }

    pub(crate) fn consumer(&mut self) -> ClientId {
        self.consumer_of(1000)
    }

    pub(crate) fn consumer_of(&mut self, uid: i32) -> ClientId {
        let client = ClientId(self.id());
        self.feed(Input::ConsumerConnected { client, peer: Peer { uid, pid: None, machine_id: 0 } });
        client
    }

    pub(crate) fn consumer_call(&mut self, client: ClientId, method: u32, request: &[u8]) -> CallId {
        self.consumer_call_with(client, method, request, false)
    }

    pub(crate) fn consumer_call_with(
        &mut self,
        client: ClientId,
        method: u32,
        request: &[u8],
        file_attached: bool,
    ) -> CallId {
        let call = CallId { client, request: self.id() };
        let method = ConsumerCall::read(method, request).unwrap();
        self.feed(Input::ConsumerCall { call, method, file_attached });
        call
    }

    pub(crate) fn enable(&mut self, consumer: ClientId, config: &TraceConfig) -> CallId {
        self.enable_with(consumer, config, false)
    }

    pub(crate) fn enable_with(&mut self, consumer: ClientId, config: &TraceConfig, file_attached: bool) -> CallId {
        let request =
            EnableTracingRequest { trace_config: Some(Box::new(config.clone())), ..Default::default() }.encode();
        self.consumer_call_with(consumer, consumer_port::method::EnableTracing::METHOD, &request, file_attached)
    }

    /// The answer to EnableTracing: `None` while tracing, else the error text.
    pub(crate) fn ended(&self, call: CallId) -> Option<String> {
        let reply = self.replies.get(&call)?.front()?;
        let response = EnableTracingResponse::decode(reply.body.as_bytes()).unwrap();
        assert_eq!(response.disabled, Some(true));
        Some(response.error.map(|error| error.to_string()).unwrap_or_default())
    }

    pub(crate) fn is_answered(&self, call: CallId) -> bool {
        self.replies.get(&call).is_some_and(|replies| !replies.is_empty())
    }

    /// Reads everything; the packets of the trace.
    pub(crate) fn read(&mut self, consumer: ClientId) -> Vec<Vec<u8>> {
        let call = self.consumer_call(consumer, consumer_port::method::ReadBuffers::METHOD, &[]);
        let replies = &self.replies[&call];
        assert!(!replies.back().unwrap().has_more, "the stream ends");
        let mut packets = vec![Vec::new()];
        for reply in replies {
            assert!(reply.body.as_bytes().len() <= 131_072 - 64);
            for slice in ReadBuffersResponse::decode(reply.body.as_bytes()).unwrap().slices {
                packets.last_mut().unwrap().extend_from_slice(&slice.data.unwrap());
                if slice.last_slice_for_packet.unwrap() {
                    packets.push(Vec::new());
                }
            }
        }
        assert_eq!(packets.pop(), Some(Vec::new()), "the last packet is whole");
        packets
    }

    /// Reads everything; text and loss of the packets that producers wrote.
    pub(crate) fn read_texts(&mut self, consumer: ClientId) -> Vec<String> {
        self.read(consumer).iter().filter_map(|packet| text_of(packet)).collect()
    }
}

fn advance(now: &mut Now, by_ns: u64) {
    for clock in [
        &mut now.boottime_ns,
        &mut now.realtime_coarse_ns,
        &mut now.monotonic_coarse_ns,
        &mut now.realtime_ns,
        &mut now.monotonic_ns,
        &mut now.monotonic_raw_ns,
    ] {
        *clock += by_ns;
    }
}

/// A packet with a TestEvent, as the first of a new writer (`first_packet_on_sequence`).
pub(crate) fn packet(text: &str) -> Vec<u8> {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    let mut packet = esatto_schema::TracePacketWriter::from(buffer.message());
    packet.first_packet_on_sequence(true);
    packet.for_testing().str(text);
    drop(packet);
    buffer.to_vec()
}

/// The text of a TestEvent, followed by `=loss` if there was one.
pub(crate) fn text_of(packet: &[u8]) -> Option<String> {
    let packet = TracePacketReader::parse(packet).expect("a packet that is a message");
    let text = String::from_utf8_lossy(packet.for_testing()?.str()?).into_owned();
    match packet.previous_packet_dropped() {
        None | Some(0) => Some(text),
        Some(loss) => Some(format!("{text}={loss}")),
    }
}

pub(crate) fn buffer(size_kb: u32) -> BufferConfig {
    BufferConfig { size_kb: Some(size_kb), ..BufferConfig::default() }
}

pub(crate) fn source(name: &str) -> DataSource {
    let config = DataSourceConfig { name: Some(name.into()), ..DataSourceConfig::default() };
    DataSource { config: Some(Box::new(config)), ..DataSource::default() }
}

/// A config with one buffer and these data sources.
pub(crate) fn config(sources: &[&str]) -> TraceConfig {
    TraceConfig {
        buffers: vec![buffer(64)],
        data_sources: sources.iter().map(|name| source(name)).collect(),
        ..TraceConfig::default()
    }
}
