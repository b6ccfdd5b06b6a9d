//! The in-process backend: a tracing service of our own, on the control thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use esatto_map::{Map, Set};
use esatto_schema::{consumer_port, producer_port};
use esatto_service::{
    Attachment, CallId, ClientId, ConsumerCall, FileId, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall,
    Service, ServiceConfig, SharedBuffer, SystemFacts, TimerClock, TimerId,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Memory, PrivateRegion, ServiceRegion};
use rustix::time::{ClockId, clock_gettime};

use super::call::{Call, Reply, SharedMemory};
use super::link::LinkEvent;
use crate::ids;

/// Starts a service in this process.
pub(crate) fn start() -> Box<dyn InProcess> {
    Box::new(LocalService::new())
}

/// A service in this process, as its links and the control thread see it.
pub(crate) trait InProcess: core::fmt::Debug + Send {
    fn connect(&mut self, port: Port) -> ClientId;

    fn disconnect(&mut self, client: ClientId, port: Port);

    /// Makes a call. `false`: the service does not have the method.
    fn invoke(&mut self, id: CallId, port: Port, method: &str, args: &[u8]) -> bool;

    /// The next reply to a client.
    fn next_reply(&mut self, client: ClientId) -> Option<Delivery>;

    /// How long until the next timer is due.
    fn next_deadline(&self) -> Option<Duration>;

    /// Fires the timers that are due.
    fn run_timers(&mut self);
}

/// The service and everything that it asks its owner to keep.
struct LocalService {
    service: Service,
    outputs: Outputs,
    next_client: u64,
    regions: Map<ClientId, Arc<dyn Memory>>,
    /// Replies that wait for their link to fetch them.
    deliveries: Map<ClientId, VecDeque<Delivery>>,
    timers: BinaryHeap<Reverse<(u64, TimerId)>>,
    cancelled: Set<TimerId>,
    files: Map<FileId, File>,
    /// What the service asked to be told, in order.
    inputs: VecDeque<Owed>,
}

/// An input that an output led to.
enum Owed {
    Ready(ClientId),
    Memory(ClientId, Option<Box<dyn SharedBuffer>>),
    Opened(FileId, Result<(), String>),
    Written(FileId, Result<(), String>),
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
            word.copy_from_slice(&ids::random().to_le_bytes());
        }
        let config = ServiceConfig {
            uid: rustix::process::getuid().as_raw() as i32,
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
            cancelled: Set::new(),
            files: Map::new(),
            inputs: VecDeque::new(),
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.service.handle(&clocks(), input, &mut self.outputs);
        self.carry_out();
        while let Some(owed) = self.inputs.pop_front() {
            let input = match owed {
                Owed::Ready(client) => Input::Ready(client),
                Owed::Memory(client, buffer) => Input::SharedBufferCreated { client, buffer },
                Owed::Opened(file, result) => Input::FileOpened { file, result },
                Owed::Written(file, result) => Input::FileWritten { file, result },
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
                    let answer = Some((reply.body.as_bytes().to_vec(), reply.has_more));
                    self.deliver(client, Delivery { request: reply.call.request, reply: answer, memory });
                }
                Output::Reject(call) => {
                    self.deliver(call.client, Delivery { request: call.request, reply: None, memory: None });
                }
                Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                    let buffer = self.create_memory(client, size_bytes, page_size_bytes);
                    self.inputs.push_back(Owed::Memory(client, buffer));
                }
                // A link has no queue that could fill up.
                Output::AwaitReady(client) => self.inputs.push_back(Owed::Ready(client)),
                Output::SetTimer { timer, clock, at_ns } => self.timers.push(Reverse((monotonic(clock, at_ns), timer))),
                Output::CancelTimer(timer) => drop(self.cancelled.insert(timer)),
                Output::CreateFile { file, path } => {
                    let path = std::ffi::OsStr::from_bytes(&path);
                    let result = File::create_new(path).map(|f| drop(self.files.insert(file, f)));
                    self.inputs.push_back(Owed::Opened(file, result.map_err(|e| e.to_string())));
                }
                Output::WriteFile { file, bytes } => {
                    let result = match self.files.get_mut(&file) {
                        Some(f) => f.write_all(&bytes).map_err(|e| e.to_string()),
                        None => Err("the file is not open".into()),
                    };
                    self.inputs.push_back(Owed::Written(file, result));
                }
                // It would be that of the program, which is not a consumer's to change.
                Output::SetPriority { change, .. } => self.inputs.push_back(Owed::Priority(change)),
                Output::SyncFile(file) => {
                    if let Some(f) = self.files.get(&file) {
                        let _ = f.sync_data();
                    }
                }
                Output::CloseFile(file) => drop(self.files.remove(&file)),
                // Descriptors do not travel inside the process, no client is dangerous, and nobody reads the log.
                _ => {}
            }
        }
    }

    fn deliver(&mut self, client: ClientId, delivery: Delivery) {
        if let Some(queue) = self.deliveries.get_mut(&client) {
            queue.push_back(delivery);
        }
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
        let peer = Peer {
            uid: rustix::process::getuid().as_raw() as i32,
            pid: Some(std::process::id() as i32),
            machine_id: 0,
        };
        match port {
            Port::Producer => self.handle(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared }),
            Port::Consumer => self.handle(Input::ConsumerConnected { client, peer }),
        }
        client
    }

    fn disconnect(&mut self, client: ClientId, port: Port) {
        self.deliveries.remove(&client);
        match port {
            Port::Producer => self.handle(Input::ProducerDisconnected(client)),
            Port::Consumer => self.handle(Input::ConsumerDisconnected(client)),
        }
        self.regions.remove(&client);
    }

    fn invoke(&mut self, id: CallId, port: Port, method: &str, args: &[u8]) -> bool {
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
                .map(|method| Input::ConsumerCall { call: id, method, file_attached: false }),
        };
        parsed.map(|input| self.handle(input)).is_some()
    }

    fn next_reply(&mut self, client: ClientId) -> Option<Delivery> {
        self.deliveries.get_mut(&client)?.pop_front()
    }

    fn next_deadline(&self) -> Option<Duration> {
        let Reverse((at, _)) = self.timers.peek()?;
        Some(Duration::from_nanos(at.saturating_sub(read(ClockId::Monotonic))))
    }

    fn run_timers(&mut self) {
        let now = read(ClockId::Monotonic);
        while let Some(&Reverse((at, timer))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            if !self.cancelled.remove(&timer) {
                self.handle(Input::TimerExpired(timer));
            }
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
        if !service.invoke(CallId { client: self.client, request }, self.port, call.method, &call.args) {
            return call.tag;
        }
        self.next_request += 1;
        if let Some(tag) = call.tag {
            self.pending.insert(request, tag);
        }
        None
    }

    /// Handles the replies that have arrived. Returns whether there were any.
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
        any
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

fn read(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
