//! The tracing service in this process, on the control thread.

use core::sync::atomic::{AtomicU32, Ordering};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use esatto_map::{Map, Set};
use esatto_ports::{consumer_port, producer_port};
use esatto_service::{
    Attachment, Body, CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall,
    Service, ServiceConfig, SharedBuffer, SystemFacts, TimerClock, TimerId,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Memory, PrivateRegion, ServiceRegion};
use esatto_trace_files::{FileEvent, Files};

use super::trace_files::{self, Sdk};
use crate::connection::transport::{Delivery, InProcessService, Port, SharedMemory};
use crate::os::{self, ClockId, OwnedFd, read_clock as read};
use crate::random::random;

/// Starts a service in this process.
pub(crate) fn start() -> Box<dyn InProcessService> {
    Box::new(LocalService::new())
}

/// The service's machine; 0: this one.
static MACHINE_ID: AtomicU32 = AtomicU32::new(0);

/// Sets the machine of the producers of a service that starts later.
pub(crate) fn set_machine_id(machine_id: u32) {
    MACHINE_ID.store(machine_id, Ordering::Relaxed);
}

fn machine_id() -> u32 {
    MACHINE_ID.load(Ordering::Relaxed)
}

/// The service and everything that it leaves to its host.
struct LocalService {
    service: Service,
    outputs: Outputs,
    next_client: u64,
    regions: Map<ClientId, Arc<dyn Memory>>,
    /// Replies that wait for their client.
    deliveries: Map<ClientId, VecDeque<Delivery>>,
    timers: BinaryHeap<Reverse<(u64, TimerId)>>,
    files: Files<Sdk>,
    /// Threads that write files, of which some may be closed for further jobs.
    file_threads: usize,
    /// The descriptor that arrived with the call that is being handled.
    attached: Option<(CallId, OwnedFd)>,
    /// Clients that get more replies when they have taken the waiting ones.
    awaited: Set<ClientId>,
    /// Inputs that the service asked for, in order.
    inputs: VecDeque<Owed>,
}

/// An input that an output led to.
enum Owed {
    Memory(ClientId, Option<Box<dyn SharedBuffer>>),
    Priority(u64),
}

impl LocalService {
    fn new() -> Self {
        let mut seed = [0; 32];
        for word in seed.chunks_exact_mut(8) {
            word.copy_from_slice(&random().to_le_bytes());
        }
        let config = ServiceConfig {
            uid: os::uid(),
            version: concat!("Esatto v", env!("CARGO_PKG_VERSION")).into(),
            system: SystemFacts::default(),
            seed,
        };
        let mut service = Service::new(config);
        service.keep_unwritten();
        service.keep_names(0);
        Self {
            service,
            outputs: Outputs::new(),
            next_client: 1,
            regions: Map::new(),
            deliveries: Map::new(),
            timers: BinaryHeap::new(),
            files: Files::new(Sdk),
            file_threads: 0,
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
                        self.file_threads += usize::from(self.files.adopt(file, move || fd.into()).is_ok());
                    }
                }
                Output::CreateFile { file, path, .. } => {
                    // An event reports the result.
                    self.file_threads += usize::from(self.files.create(file, os::to_path(path)).is_ok());
                }
                Output::WriteFile { file, bytes } => self.files.write(file, bytes),
                Output::CopyFile { from, to } => self.files.copy(from, to),
                // It would be the priority of the program, which a consumer must not change.
                Output::SetPriority { change, .. } => self.inputs.push_back(Owed::Priority(change)),
                Output::SyncFile(file) => self.files.sync(file),
                Output::CloseFile(file) => self.files.close(file),
                // No client is dangerous, and nothing reads the log.
                _ => {}
            }
        }
    }

    fn deliver(&mut self, client: ClientId, delivery: Delivery) {
        if let Some(queue) = self.deliveries.get_mut(&client) {
            queue.push_back(delivery);
        }
    }

    /// Tells the service the results of file operations. Returns false if there were none.
    fn look_at_files(&mut self) -> bool {
        let mut has_news = false;
        while let Some(event) = self.files.next_event() {
            has_news = true;
            self.handle(match event {
                FileEvent::Opened(file, result) => Input::FileOpened { file, result },
                FileEvent::Written(file, result, _) => Input::FileWritten { file, result },
                FileEvent::Copied(file, result) => Input::FileCopied { file, result },
                FileEvent::Closed(_) => {
                    self.file_threads -= 1;
                    continue;
                }
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

impl InProcessService for LocalService {
    fn connect(&mut self, port: Port) -> u64 {
        let client = ClientId(self.next_client);
        self.next_client += 1;
        self.deliveries.insert(client, VecDeque::new());
        // The number is the machine of the data, not of its readers.
        let machine_id = if port == Port::Producer { machine_id() } else { 0 };
        let peer = Peer { uid: os::uid(), pid: None, machine_id };
        match port {
            Port::Producer => self.handle(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared }),
            Port::Consumer => self.handle(Input::ConsumerConnected { client, peer }),
        }
        client.0
    }

    fn disconnect(&mut self, client: u64, port: Port) {
        let client = ClientId(client);
        self.deliveries.remove(&client);
        self.awaited.remove(&client);
        match port {
            Port::Producer => self.handle(Input::ProducerDisconnected(client)),
            Port::Consumer => self.handle(Input::ConsumerDisconnected(client)),
        }
        self.regions.remove(&client);
    }

    fn invoke(
        &mut self,
        client: u64,
        request: u64,
        port: Port,
        method: &str,
        args: &[u8],
        fd: Option<OwnedFd>,
    ) -> bool {
        let id = CallId { client: ClientId(client), request };
        let file_attached = fd.is_some();
        self.attached = fd.map(|fd| (id, fd));
        let parsed = match port {
            Port::Producer => producer_port::SERVICE
                .id_of(method)
                .and_then(|method| ProducerCall::read(method, args))
                .map(|method| Input::ProducerCall { call: id, method, offered: None }),
            Port::Consumer => consumer_port::SERVICE
                .id_of(method)
                .and_then(|method| ConsumerCall::read(method, args))
                .map(|method| Input::ConsumerCall { call: id, method, file_attached }),
        };
        let is_known = parsed.map(|input| self.handle(input)).is_some();
        self.attached = None;
        is_known
    }

    fn must_wait(&self) -> bool {
        self.service.must_wait()
    }

    fn next_reply(&mut self, client: u64) -> Option<Delivery> {
        self.deliveries.get_mut(&ClientId(client))?.pop_front()
    }

    fn ready(&mut self, client: u64) -> bool {
        let client = ClientId(client);
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
        trace_files::complete(|| {
            // A closed file may have its last packets still in the queue of its thread.
            let is_any_closing = self.file_threads > self.files.len();
            (self.service.is_draining() || is_any_closing).then(|| self.look_at_files())
        });
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

/// Converts a deadline to the monotonic clock.
fn monotonic(clock: TimerClock, at_ns: u64) -> u64 {
    match clock {
        TimerClock::Monotonic => at_ns,
        TimerClock::Boottime => {
            let left = at_ns.saturating_sub(read(ClockId::Boottime));
            read(ClockId::Monotonic).saturating_add(left)
        }
    }
}
