//! Streams of frames from one hostile connection, through the RPC layer into a service that
//! meanwhile records another producer.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use std::collections::BTreeMap;
use std::sync::Arc;

use esatto_ipc::{Family, FrameDecoder, Host, HostEvent, Invoke, Peer as IpcPeer};
use esatto_protozero::{Fields, Owned, Value};
use esatto_schema::{ChangeTraceConfigRequest, EnableTracingRequest, ReadBuffersResponseReader, TraceConfig};
use esatto_service::{
    CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall, RelayCall, Service,
    ServiceConfig, SharedBuffer, SystemFacts, TimerId,
};
use esatto_shm::{PrivateRegion, ServiceRegion, abi::PageSize};

use crate::bytes::{message, varint};

/// Memory that the sessions of one stream may ask for: more would only make the fuzzer slow.
const MAX_BUFFERS_KB: u64 = 64 * 1024;
/// Shared memory that is granted.
const MAX_REGION_BYTES: usize = 1 << 20;

/// Wishes in InitializeConnection: pages of 4 KiB, 16 KiB in all. More would only make the fuzzer
/// slow.
const SMALL_MEMORY: [u8; 7] = [0x08, 0x80, 0x20, 0x10, 0x80, 0x80, 0x01];

/// The connection that the bytes come from.
const HOSTILE: ClientId = ClientId(1);
/// The victims, which must not notice: a producer without shared memory, and its consumer.
const VICTIM: ClientId = ClientId(2);
const WATCHER: ClientId = ClientId(3);
/// A consumer that records the hostile producer's data source, and a producer that a hostile
/// consumer may record.
const PARTNER: ClientId = ClientId(4);

/// A producer: the first byte says whether memory is shared with it and whether it has introduced
/// itself, the rest are frames. On other sockets than unix it may also be a relay.
pub fn producer_frames(bytes: &[u8]) {
    let (&options, stream) = bytes.split_first().unwrap_or((&0, &[]));
    let mut world = World::new();
    let shares_memory = options & 1 == 0;
    world.memory = if shares_memory { MemoryKind::Shared } else { MemoryKind::Emulated };
    world.offers_memory = options & 4 != 0;
    world.feed(Input::ConsumerConnected { client: PARTNER, peer: peer(1000) });
    world.enable(PARTNER, b"hostile", b"");
    let mut prologue = Vec::new();
    let is_introduced = options & 2 == 0;
    if is_introduced {
        // Its name, and that it wants to be scraped.
        call(&mut prologue, 1, &[&SMALL_MEMORY[..], &message(3, b"hostile"), &[0x20, 1]].concat());
        call(&mut prologue, 5, &[]);
        call(&mut prologue, 2, &message(1, &message(1, b"hostile")));
        call(&mut prologue, 6, &[0x08, 1, 0x10, 2]);
    }
    let identity = if shares_memory { IpcPeer::local(1000, Some(7)) } else { remote() };
    let ports = [&esatto_ports::producer_port::SERVICE, &esatto_ports::relay_port::SERVICE];
    let host = Host::new(Arc::new(ports), identity);
    world.play(host, &[&prologue[..], stream]);
    world.finish(Input::ProducerDisconnected(HOSTILE));
}

/// A consumer: all bytes are frames.
pub fn consumer_frames(bytes: &[u8]) {
    let mut world = World::new();
    world.feed(Input::ProducerConnected { client: PARTNER, peer: peer(1000), memory: MemoryKind::Shared });
    world.introduce(PARTNER, b"partner");
    let ports = Arc::new([&esatto_ports::consumer_port::SERVICE]);
    world.play(Host::new(ports, IpcPeer::local(1000, Some(8))), &[bytes]);
    world.finish(Input::ConsumerDisconnected(HOSTILE));
}

fn remote() -> IpcPeer {
    IpcPeer::remote(Family::Inet, "localhost".into())
}

fn peer(uid: i32) -> Peer {
    Peer { uid, pid: Some(5), machine_id: 0 }
}

/// Appends the frame of a call of service 1.
fn call(stream: &mut Vec<u8>, method: u8, args: &[u8]) {
    let invoke = [vec![0x08, 1, 0x10, method], message(3, args)].concat();
    let frame = [vec![0x10, 1], message(5, &invoke)].concat();
    stream.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    stream.extend_from_slice(&frame);
}

/// A service and its clients.
struct World {
    service: Service,
    now: Now,
    memory: MemoryKind,
    /// A descriptor of good memory comes with each introduction.
    offers_memory: bool,
    /// How the hostile connection is known to the service, and that it still is.
    is_client: bool,
    is_relay: bool,
    is_gone: bool,
    /// The request ids of its calls.
    pending: BTreeMap<u64, u64>,
    last_request: u64,
    replies: Vec<u8>,
    timers: BTreeMap<TimerId, u64>,
    /// Replies to ReadBuffers of the watcher.
    read: Vec<u8>,
}

impl World {
    /// A session records the victim, which has committed a packet.
    fn new() -> Self {
        let config =
            ServiceConfig { uid: 0, version: "fuzzed".to_owned(), system: SystemFacts::default(), seed: [7; 32] };
        let mut world = Self {
            service: Service::new(config),
            now: Now { boottime_ns: 1_000_000_000, monotonic_ns: 1_000_000_000, ..Now::default() },
            memory: MemoryKind::Shared,
            offers_memory: false,
            is_client: false,
            is_relay: false,
            is_gone: false,
            pending: BTreeMap::new(),
            last_request: 0,
            replies: Vec::new(),
            timers: BTreeMap::new(),
            read: Vec::new(),
        };
        world.feed(Input::ConsumerConnected { client: WATCHER, peer: peer(0) });
        world.enable(WATCHER, b"victim", b"victim");
        world.feed(Input::ProducerConnected { client: VICTIM, peer: peer(0), memory: MemoryKind::Emulated });
        world.introduce(VICTIM, b"victim");
        world.commit(0);
        world
    }

    /// A session for one data source of one producer (of any, if it has no name).
    fn enable(&mut self, client: ClientId, source: &[u8], producer: &[u8]) {
        let mut source = message(1, &message(1, source));
        if !producer.is_empty() {
            source.extend(message(2, producer));
        }
        // size_kb: 64
        let config = [message(1, &[0x08, 64]), message(2, &source)].concat();
        self.consumer(client, consumer_port::method::EnableTracing::METHOD, &message(1, &config));
    }

    /// Offers a data source with the producer's name.
    fn introduce(&mut self, client: ClientId, name: &[u8]) {
        let introduction = [&SMALL_MEMORY[..], &message(3, name)].concat();
        self.producer(client, producer_port::method::InitializeConnection::METHOD, &introduction);
        self.producer(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
        self.producer(client, producer_port::method::RegisterDataSource::METHOD, &message(1, &message(1, name)));
    }

    /// The victim commits a packet into its buffer, the first there was.
    fn commit(&mut self, chunk_id: u8) {
        let packet = packet(chunk_id);
        let header = [chunk_id, 0, 0, 0, 1, 0, 1, 0];
        let chunk = [&header[..], &varint(packet.len() as u64), &packet].concat();
        let args = message(1, &[vec![0x18, 1], message(4, &chunk)].concat());
        self.producer(VICTIM, producer_port::method::CommitData::METHOD, &args);
    }

    /// Only the victim wrote into its session, and all its packets are there.
    fn finish(mut self, farewell: Input<'_>) {
        self.commit(1);
        self.consumer(WATCHER, consumer_port::method::ReadBuffers::METHOD, &[]);
        let read = core::mem::take(&mut self.read);
        let texts: Vec<&[u8]> = read
            .chunk_by(|_, _| true)
            .flat_map(|replies| Fields::new(replies).filter(|field| field.id == 1))
            .filter_map(|field| if let Value::Bytes(packet) = field.value { Some(packet) } else { None })
            .filter(|packet| !is_of_service(packet))
            .map(|packet| for_testing(packet).unwrap_or(packet))
            .collect();
        assert_eq!(texts, [&[b'v', 0][..], &[b'v', 1]], "the victim's packets, and no others");
        if !self.is_gone {
            if self.is_client {
                self.feed(farewell);
            }
            if self.is_relay {
                self.feed(Input::RelayDisconnected(HOSTILE));
            }
        }
        self.feed(Input::ProducerDisconnected(VICTIM));
        self.feed(Input::ConsumerDisconnected(WATCHER));
        // It is one or the other.
        self.feed(Input::ProducerDisconnected(PARTNER));
        self.feed(Input::ConsumerDisconnected(PARTNER));
    }

    /// Plays a stream of frames, as the daemon does.
    fn play(&mut self, mut host: Host, streams: &[&[u8]]) {
        let stream = streams.concat();
        let mut decoder = FrameDecoder::new();
        let mut at = 0;
        while at < stream.len() && !self.is_gone {
            at += decoder.push(&stream[at..]);
            loop {
                let Ok(next) = decoder.next_frame() else { return };
                let Some(frame) = next else { break };
                self.replies.clear();
                if let Some(HostEvent::Invoke(invoke)) = host.handle(&frame, &mut self.replies) {
                    if !self.invoke(&invoke, &host) {
                        host.reply_not_invoked(invoke.request_id, &mut self.replies);
                    }
                }
                self.pass_time();
                check_frames(&self.replies);
                if self.is_gone {
                    return;
                }
            }
        }
    }

    /// Hands a call in; false if its arguments make no sense.
    fn invoke(&mut self, invoke: &Invoke<'_>, host: &Host) -> bool {
        let id = host.peer();
        let peer = Peer { uid: id.uid, pid: id.pid, machine_id: id.machine_id };
        self.last_request += 1;
        let call = CallId { client: HOSTILE, request: self.last_request };
        match invoke.service.name {
            "ProducerPort" => {
                if !core::mem::replace(&mut self.is_client, true) {
                    self.feed(Input::ProducerConnected { client: HOSTILE, peer, memory: self.memory });
                }
                let Some(method) = ProducerCall::read(invoke.method_id, invoke.args) else { return false };
                let mut offered = None;
                if let ProducerCall::InitializeConnection(request) = &method {
                    if self.offers_memory && request.producer_provided_shmem() == Some(true) {
                        offered = region(16384, 4096, invoke.args);
                    }
                }
                self.note(invoke, call);
                self.feed(Input::ProducerCall { call, method, offered });
            }
            "RelayPort" => {
                if !core::mem::replace(&mut self.is_relay, true) {
                    self.feed(Input::RelayConnected { client: HOSTILE, peer });
                    self.feed(Input::MachineNamed { client: HOSTILE, name: &id.machine_name });
                }
                let Some(method) = RelayCall::read(invoke.method_id, invoke.args) else { return false };
                self.note(invoke, call);
                self.feed(Input::RelayCall { call, method });
            }
            _ => {
                if !core::mem::replace(&mut self.is_client, true) {
                    self.feed(Input::ConsumerConnected { client: HOSTILE, peer });
                }
                let Some(method) = ConsumerCall::read(invoke.method_id, invoke.args) else { return false };
                if is_left_out(&method, invoke.args) {
                    return true;
                }
                self.note(invoke, call);
                self.feed(Input::ConsumerCall { call, method, file_attached: invoke.request_id % 2 == 1 });
            }
        }
        true
    }

    fn note(&mut self, invoke: &Invoke<'_>, call: CallId) {
        if !invoke.drop_reply {
            self.pending.insert(call.request, invoke.request_id);
        }
    }

    fn producer(&mut self, client: ClientId, method: u32, args: &[u8]) {
        let method = ProducerCall::read(method, args).expect("own arguments");
        self.last_request += 1;
        self.feed(Input::ProducerCall { call: CallId { client, request: self.last_request }, method, offered: None });
    }

    fn consumer(&mut self, client: ClientId, method: u32, args: &[u8]) {
        let method = ConsumerCall::read(method, args).expect("own arguments");
        let call = CallId { client, request: self.last_request + 1 };
        self.last_request += 1;
        self.feed(Input::ConsumerCall { call, method, file_attached: false });
    }

    /// A millisecond, and what expires in it.
    fn pass_time(&mut self) {
        self.now.boottime_ns += 1_000_000;
        self.now.monotonic_ns += 1_000_000;
        let due = |(&timer, &at): (&TimerId, &u64)| (at <= self.now.monotonic_ns).then_some(timer);
        let due: Vec<TimerId> = self.timers.iter().filter_map(due).collect();
        for timer in due {
            if self.timers.remove(&timer).is_some() {
                self.feed(Input::TimerExpired(timer));
            }
        }
    }

    /// Feeds an input and carries out its outputs.
    fn feed(&mut self, input: Input<'_>) {
        let mut out = Outputs::new();
        self.service.handle(&self.now, input, &mut out);
        while let Some(output) = out.pop() {
            let answer = match output {
                Output::Reply(reply) => {
                    self.replied(&reply);
                    continue;
                }
                Output::Reject(call) => {
                    assert!(call.client != VICTIM && call.client != WATCHER, "a call of the victim is rejected");
                    self.pending.remove(&call.request);
                    continue;
                }
                Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => Input::SharedBufferCreated {
                    client,
                    buffer: region(size_bytes, page_size_bytes, &self.last_request.to_le_bytes()),
                },
                Output::CloseClient { client, .. } => {
                    assert!(client != VICTIM && client != WATCHER, "the victim is cut off");
                    if client != HOSTILE || core::mem::replace(&mut self.is_gone, true) {
                        continue;
                    }
                    Input::ProducerDisconnected(client)
                }
                Output::AwaitReady(client) if !(client == HOSTILE && self.is_gone) => Input::Ready(client),
                Output::SetTimer { timer, at_ns, .. } => {
                    self.timers.insert(timer, at_ns);
                    continue;
                }
                Output::CancelTimer(timer) => {
                    self.timers.remove(&timer);
                    continue;
                }
                Output::CreateFile { file, .. } => Input::FileOpened { file, result: Ok(()) },
                Output::WriteFile { file, .. } => Input::FileWritten { file, result: Ok(()) },
                Output::CopyFile { to, .. } => Input::FileCopied { file: to, result: Ok(()) },
                Output::SetPriority { change, .. } => Input::PrioritySet { change, result: Ok(()) },
                _ => continue,
            };
            self.service.handle(&self.now, answer, &mut out);
        }
    }

    fn replied(&mut self, reply: &esatto_service::Reply) {
        let body = reply.body.as_bytes();
        match reply.call.client {
            HOSTILE => {
                // Every reply of the service fits in a frame.
                if let Some(&id) = self.pending.get(&reply.call.request) {
                    let host = Host::new(Arc::new([&esatto_ports::producer_port::SERVICE]), remote());
                    host.reply_ok(id, body, reply.has_more, &mut self.replies).expect("it fits");
                    if !reply.has_more {
                        self.pending.remove(&reply.call.request);
                    }
                }
            }
            WATCHER => {
                let slices = ReadBuffersResponseReader::new(body).slices();
                // The victim's packets are small: each comes in the slices of one reply, the last
                // of them marked.
                let mut packet = Vec::new();
                for slice in slices {
                    packet.extend_from_slice(slice.data().unwrap_or_default());
                    if slice.last_slice_for_packet() == Some(true) {
                        self.read.extend(message(1, &packet));
                        packet.clear();
                    }
                }
            }
            _ => {}
        }
    }
}

/// Calls that other clients may notice, or that only slow the fuzzer down.
fn is_left_out(method: &ConsumerCall<'_>, args: &[u8]) -> bool {
    let config: Option<TraceConfig> = match method {
        ConsumerCall::EnableTracing(_) => {
            EnableTracingRequest::decode(args).ok().and_then(|request| request.trace_config).map(|config| *config)
        }
        ConsumerCall::ChangeTraceConfig(_) => {
            ChangeTraceConfigRequest::decode(args).ok().and_then(|request| request.trace_config).map(|config| *config)
        }
        _ => None,
    };
    config.is_some_and(|config| {
        let buffers_kb: u64 = config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum();
        buffers_kb > MAX_BUFFERS_KB || config.exclusive_prio.is_some() || config.lockdown_mode.is_some()
    })
}

/// Shared memory in which every page is one complete chunk, with `content` in it.
fn region(size_bytes: usize, page_size_bytes: usize, content: &[u8]) -> Option<Box<dyn SharedBuffer>> {
    if size_bytes > MAX_REGION_BYTES {
        return None;
    }
    let mut bytes = vec![0; size_bytes];
    for (number, page) in (0_u8..).zip(bytes.chunks_exact_mut(page_size_bytes).take(64)) {
        page[..4].copy_from_slice(&0x1000_0003_u32.to_le_bytes());
        // A chunk of a registered or an unregistered writer, with flags or without.
        page[8..16].copy_from_slice(&[number, 0, 0, 0, 1 + number % 2, 0, 2, number & 0x1c]);
        // A good packet, and any bytes.
        let packet = message(900, &message(1, &[b'h', number]));
        let payload = [&varint(packet.len() as u64), &packet[..], content].concat();
        let len = payload.len().min(page.len() - 16);
        page[16..16 + len].copy_from_slice(&payload[..len]);
    }
    let page_size = PageSize::new(page_size_bytes).ok()?;
    Some(Box::new(ServiceRegion::new(Arc::new(PrivateRegion::from_bytes(&bytes)), page_size).ok()?))
}

/// The answers must be a stream of whole frames.
fn check_frames(mut bytes: &[u8]) {
    let mut decoder = FrameDecoder::new();
    loop {
        let taken = decoder.push(bytes);
        bytes = &bytes[taken..];
        while decoder.next_frame().expect("own frames are not too large").is_some() {}
        if bytes.is_empty() {
            break;
        }
    }
    assert_eq!((decoder.buffered(), decoder.skipped()), (0, 0));
}

/// A packet of the victim: `for_testing { str: "v" and its number }`.
fn packet(number: u8) -> Vec<u8> {
    message(900, &message(1, &[b'v', number]))
}

/// Sequence 1 is that of the service.
fn is_of_service(packet: &[u8]) -> bool {
    Fields::new(packet).filter(|field| field.id == 10).last().is_none_or(|field| field.as_u64() <= 1)
}

/// The text in `for_testing`.
fn for_testing(packet: &[u8]) -> Option<&[u8]> {
    let event = Fields::new(packet).filter(|field| field.id == 900).last()?.as_bytes();
    Some(Fields::new(event).filter(|field| field.id == 1).last()?.as_bytes())
}
