//! The in-process backend: a tracing service of our own, on the control thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use esatto_map::{Map, Set};
use esatto_schema::{consumer_port, producer_port};
use esatto_service::{
    Attachment, Body, CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall,
    Service, ServiceConfig, SharedBuffer, SystemFacts, TimerClock, TimerId,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Memory, PrivateRegion, ServiceRegion};
use esatto_trace_files::{FileEvent, Files};

use super::trace_files::Sdk;
use crate::connection::transport::{Call, LinkEvent, Reply, SharedMemory};
use crate::os::{self, ClockId, OwnedFd, read_clock as read};
use crate::{raw, track_uuid};

/// Starts a service in this process.
pub(crate) fn start() -> Box<dyn InProcess> {
    Box::new(LocalService::new())
}

/// A service in this process, as its links and the control thread see it.
pub(crate) trait InProcess: core::fmt::Debug + Send {
    fn connect(&mut self, port: Port) -> ClientId;

    fn disconnect(&mut self, client: ClientId, port: Port);

    /// Makes a call. `false`: the service does not have the method.
    fn invoke(&mut self, id: CallId, port: Port, method: &str, args: &[u8], fd: Option<OwnedFd>) -> bool;

    /// The next reply to a client.
    fn next_reply(&mut self, client: ClientId) -> Option<Delivery>;

    /// The client has taken all replies and can take more. Returns whether that was waited for.
    fn ready(&mut self, client: ClientId) -> bool;

    /// How long until the next timer is due.
    fn next_deadline(&self) -> Option<Duration>;

    /// Fires the timers that are due, and takes note of what has become of files.
    fn work(&mut self);
    /// Hands over what closed sessions still have to write into their files. The program, or what
    /// it does with us, ends.
    fn complete_files(&mut self);
}

/// A file that takes nothing for so long is not waited for at the end.
const PATIENCE_WITH_FILES_NS: u64 = 5_000_000_000;

/// The service and everything that it asks its owner to keep.
struct LocalService {
    service: Service,
    outputs: Outputs,
    next_client: u64,
    regions: Map<ClientId, Arc<dyn Memory>>,
    /// Replies that wait for their link to fetch them.
    deliveries: Map<ClientId, VecDeque<Delivery>>,
    timers: BinaryHeap<Reverse<(u64, TimerId)>>,
    files: Files<Sdk>,
    /// The descriptor that came with the call being handled.
    attached: Option<(CallId, OwnedFd)>,
    /// Clients that get more when they have taken what they have.
    awaited: Set<ClientId>,
    /// What the service asked to be told, in order.
    inputs: VecDeque<Owed>,
}

/// An input that an output led to.
enum Owed {
    Memory(ClientId, Option<Box<dyn SharedBuffer>>),
    Priority(u64),
}

/// A reply on its way to its link.
pub(crate) struct Delivery {
    request: u64,
    /// `None`: rejected.
    reply: Option<(Vec<u8>, bool)>,
    memory: Option<SharedMemory>,
}

/// Which port a link talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Producer,
    Consumer,
}

/// A client of the service in this process.
#[derive(Debug)]
pub(crate) struct LocalLink<T> {
    client: ClientId,
    port: Port,
    next_request: u64,
    pending: Map<u64, T>,
}

impl LocalService {
    fn new() -> Self {
        let mut seed = [0; 32];
        for word in seed.chunks_exact_mut(8) {
            word.copy_from_slice(&track_uuid::random().to_le_bytes());
        }
        let config = ServiceConfig {
            uid: os::uid(),
            version: concat!("Esatto v", env!("CARGO_PKG_VERSION")).into(),
            system: SystemFacts::default(),
            seed,
        };
        Self {
            service: Service::new(config),
            outputs: Outputs::new(),
            next_client: 1,
            regions: Map::new(),
            deliveries: Map::new(),
            timers: BinaryHeap::new(),
            files: Files::new(Sdk),
            attached: None,
            awaited: Set::new(),
            inputs: VecDeque::new(),
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.service.handle(&clocks(), input, &mut self.outputs);
        self.carry_out();
        while let Some(owed) = self.inputs.pop_front() {
            let input = match owed {
                Owed::Memory(client, buffer) => Input::SharedBufferCreated { client, buffer },
                Owed::Priority(change) => {
                    Input::PrioritySet { change, result: Err("the service runs inside a program".to_owned()) }
                }
            };
            self.service.handle(&clocks(), input, &mut self.outputs);
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.outputs.pop() {
            match output {
                Output::Reply(reply) => {
                    let client = reply.call.client;
                    let memory = match reply.attachment {
                        Attachment::SharedBuffer => self.regions.get(&client).cloned().map(SharedMemory::Region),
                        Attachment::Absent => None,
                    };
                    let body = match reply.body {
                        Body::Empty => Vec::new(),
                        Body::Encoded(bytes) => bytes,
                    };
                    let answer = Some((body, reply.has_more));
                    self.deliver(client, Delivery { request: reply.call.request, reply: answer, memory });
                }
                Output::Reject(call) => {
                    self.deliver(call.client, Delivery { request: call.request, reply: None, memory: None });
                }
                Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                    let buffer = self.create_memory(client, size_bytes, page_size_bytes);
                    self.inputs.push_back(Owed::Memory(client, buffer));
                }
                Output::AwaitReady(client) => drop(self.awaited.insert(client)),
                Output::SetTimer { timer, clock, at_ns } => self.timers.push(Reverse((monotonic(clock, at_ns), timer))),
                Output::CancelTimer(timer) => self.timers.retain(|Reverse((_, other))| *other != timer),
                Output::AdoptFile { file, call } => {
                    if let Some((_, fd)) = self.attached.take_if(|(of, _)| *of == call) {
                        // Without a thread, the first write fails.
                        let _ = self.files.adopt(file, move || fd.into());
                    }
                }
                Output::CreateFile { file, path } => {
                    // An event reports the result.
                    let _ = self.files.create(file, os::to_path(path));
                }
                Output::WriteFile { file, bytes } => self.files.write(file, bytes),
                Output::CopyFile { from, to } => self.files.copy(from, to),
                // It would be that of the program, which is not a consumer's to change.
                Output::SetPriority { change, .. } => self.inputs.push_back(Owed::Priority(change)),
                Output::SyncFile(file) => self.files.sync(file),
                Output::CloseFile(file) => self.files.close(file),
                // No client is dangerous, and nobody reads the log.
                _ => {}
            }
        }
    }

    fn deliver(&mut self, client: ClientId, delivery: Delivery) {
        if let Some(queue) = self.deliveries.get_mut(&client) {
            queue.push_back(delivery);
        }
    }

    /// Tells the service what became of its files. False if nothing did.
    fn look_at_files(&mut self) -> bool {
        let mut has_news = false;
        while let Some(event) = self.files.next_event() {
            has_news = true;
            self.handle(match event {
                FileEvent::Opened(file, result) => Input::FileOpened { file, result },
                FileEvent::Written(file, result, _) => Input::FileWritten { file, result },
                FileEvent::Copied(file, result) => Input::FileCopied { file, result },
                FileEvent::Closed(_) => continue,
            });
        }
        has_news
    }

    fn create_memory(&mut self, client: ClientId, size: usize, page_size: usize) -> Option<Box<dyn SharedBuffer>> {
        let page_size = PageSize::new(page_size).ok()?;
        let region: Arc<dyn Memory> = Arc::new(PrivateRegion::new(size));
        let view = ServiceRegion::new(Arc::clone(&region), page_size).ok()?;
        self.regions.insert(client, region);
        Some(Box::new(view))
    }
}

impl InProcess for LocalService {
    fn connect(&mut self, port: Port) -> ClientId {
        let client = ClientId(self.next_client);
        self.next_client += 1;
        self.deliveries.insert(client, VecDeque::new());
        // The machine of a program that says so is that of its data, not of those who read.
        let machine_id = if port == Port::Producer { raw::machine_id() } else { 0 };
        let peer = Peer { uid: os::uid(), pid: None, machine_id };
        match port {
            Port::Producer => self.handle(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared }),
            Port::Consumer => self.handle(Input::ConsumerConnected { client, peer }),
        }
        client
    }

    fn disconnect(&mut self, client: ClientId, port: Port) {
        self.deliveries.remove(&client);
        self.awaited.remove(&client);
        match port {
            Port::Producer => self.handle(Input::ProducerDisconnected(client)),
            Port::Consumer => self.handle(Input::ConsumerDisconnected(client)),
        }
        self.regions.remove(&client);
    }

    fn invoke(&mut self, id: CallId, port: Port, method: &str, args: &[u8], fd: Option<OwnedFd>) -> bool {
        let file_attached = fd.is_some();
        self.attached = fd.map(|fd| (id, fd));
        let parsed = match port {
            Port::Producer => producer_port::Method::ALL
                .iter()
                .find(|m| m.name() == method)
                .and_then(|m| ProducerCall::parse(*m, args).ok())
                .map(|method| Input::ProducerCall { call: id, method }),
            Port::Consumer => consumer_port::Method::ALL
                .iter()
                .find(|m| m.name() == method)
                .and_then(|m| ConsumerCall::parse(*m, args).ok())
                .map(|method| Input::ConsumerCall { call: id, method, file_attached }),
        };
        let is_known = parsed.map(|input| self.handle(input)).is_some();
        self.attached = None;
        is_known
    }

    fn next_reply(&mut self, client: ClientId) -> Option<Delivery> {
        self.deliveries.get_mut(&client)?.pop_front()
    }

    fn ready(&mut self, client: ClientId) -> bool {
        let was_awaited = self.awaited.remove(&client);
        if was_awaited {
            self.handle(Input::Ready(client));
        }
        was_awaited
    }

    fn next_deadline(&self) -> Option<Duration> {
        let Reverse((at, _)) = self.timers.peek()?;
        Some(Duration::from_nanos(at.saturating_sub(read(ClockId::Monotonic))))
    }

    fn complete_files(&mut self) {
        let mut last = read(ClockId::Monotonic);
        while self.service.is_draining() && read(ClockId::Monotonic) - last < PATIENCE_WITH_FILES_NS {
            if self.look_at_files() {
                last = read(ClockId::Monotonic);
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn work(&mut self) {
        self.look_at_files();
        let now = read(ClockId::Monotonic);
        while let Some(&Reverse((at, timer))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.handle(Input::TimerExpired(timer));
        }
    }
}

impl core::fmt::Debug for LocalService {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LocalService").field("clients", &self.deliveries.len()).finish_non_exhaustive()
    }
}

impl<T> LocalLink<T> {
    pub(crate) fn connect(service: &mut dyn InProcess, port: Port) -> Self {
        Self { client: service.connect(port), port, next_request: 1, pending: Map::new() }
    }

    pub(crate) fn disconnect(&self, service: &mut dyn InProcess) {
        service.disconnect(self.client, self.port);
    }

    /// Makes a call. Returns the tag if the service does not have the method.
    pub(crate) fn invoke(&mut self, service: &mut dyn InProcess, call: Call<T>) -> Option<T> {
        let request = self.next_request;
        let id = CallId { client: self.client, request };
        if !service.invoke(id, self.port, call.method, &call.args, call.fd) {
            return call.tag;
        }
        self.next_request += 1;
        if let Some(tag) = call.tag {
            self.pending.insert(request, tag);
        }
        None
    }

    /// Handles the replies that have arrived, and asks for more of those that come one by one. Returns whether there may be any.
    pub(crate) fn pump(&mut self, service: &mut dyn InProcess, mut handle: impl FnMut(LinkEvent<'_, T>)) -> bool {
        let mut any = false;
        while let Some(mut delivery) = service.next_reply(self.client) {
            any = true;
            let Some(mut tag) = self.pending.remove(&delivery.request) else { continue };
            let (success, body, has_more) = match &delivery.reply {
                Some((body, has_more)) => (true, &body[..], *has_more),
                None => (false, &[][..], false),
            };
            let reply = Reply { success, has_more, body, memory: &mut delivery.memory };
            handle(LinkEvent::Reply(&mut tag, reply));
            if has_more {
                self.pending.insert(delivery.request, tag);
            }
        }
        service.ready(self.client) || any
    }
}

fn clocks() -> Now {
    Now {
        boottime_ns: read(ClockId::Boottime),
        realtime_coarse_ns: read(ClockId::RealtimeCoarse),
        monotonic_coarse_ns: read(ClockId::MonotonicCoarse),
        realtime_ns: read(ClockId::Realtime),
        monotonic_ns: read(ClockId::Monotonic),
        monotonic_raw_ns: read(ClockId::MonotonicRaw),
        tsc: None,
    }
}

/// A deadline on the monotonic clock.
fn monotonic(clock: TimerClock, at_ns: u64) -> u64 {
    match clock {
        TimerClock::Monotonic => at_ns,
        TimerClock::Boottime => {
            let left = at_ns.saturating_sub(read(ClockId::Boottime));
            read(ClockId::Monotonic).saturating_add(left)
        }
    }
}
