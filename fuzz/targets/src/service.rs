//! The service between hostile producers and hostile consumers.

use esatto_ports::{consumer_port, producer_port};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esatto_protozero::Owned;
use esatto_schema::{ChangeTraceConfigRequest, EnableTracingRequest, TraceConfig};
use esatto_service::{
    CallId, ClientId, ConsumerCall, FileId, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall, Service,
    ServiceConfig, SystemFacts, TimerId,
};
use esatto_shm::{PrivateRegion, ServiceRegion, abi::PageSize};

use crate::script::Script;

/// Memory that one session may ask for here: more would only make the fuzzer slow.
const MAX_BUFFERS_KB: u64 = 64 * 1024;
/// Shared memory that is granted here.
const MAX_REGION_BYTES: usize = 1 << 20;
/// Sockets of one script.
const MAX_CLIENTS: usize = 16;

/// Connections, calls with any bytes, disconnects, timers and shared memory with any content.
pub fn service(bytes: &[u8]) {
    let mut world = World::new(bytes);
    while !world.script.is_empty() {
        world.step();
    }
    // All remaining clients disconnect. The service must not keep anything of them.
    for client in core::mem::take(&mut world.producers) {
        world.feed(Input::ProducerDisconnected(client));
    }
    for client in core::mem::take(&mut world.consumers) {
        world.feed(Input::ConsumerDisconnected(client));
    }
}

struct World<'a> {
    service: Service,
    script: Script<'a>,
    now: Now,
    producers: BTreeSet<ClientId>,
    consumers: BTreeSet<ClientId>,
    timers: BTreeMap<TimerId, u64>,
    files: BTreeSet<FileId>,
    last_client: u64,
    last_request: u64,
}

impl<'a> World<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let config =
            ServiceConfig { uid: 0, version: "fuzzed".to_owned(), system: SystemFacts::default(), seed: [7; 32] };
        Self {
            service: Service::new(config),
            script: Script::new(bytes),
            now: Now { boottime_ns: 1_000_000_000, monotonic_ns: 1_000_000_000, ..Now::default() },
            producers: BTreeSet::new(),
            consumers: BTreeSet::new(),
            timers: BTreeMap::new(),
            files: BTreeSet::new(),
            last_client: 0,
            last_request: 0,
        }
    }

    fn step(&mut self) {
        match self.script.u8() % 10 {
            0 => self.connect_producer(),
            1..=3 => self.producer_call(),
            4 => self.connect_consumer(),
            5..=6 => self.consumer_call(),
            7 => {
                if let Some(client) = self.pick(|world| &mut world.producers) {
                    self.producers.remove(&client);
                    self.feed(Input::ProducerDisconnected(client));
                }
            }
            8 => {
                if let Some(client) = self.pick(|world| &mut world.consumers) {
                    self.consumers.remove(&client);
                    self.feed(Input::ConsumerDisconnected(client));
                }
            }
            _ => self.pass_time(),
        }
    }

    fn connect_producer(&mut self) {
        let Some((client, peer)) = self.new_client() else { return };
        let memory = if self.script.u8() % 2 == 0 { MemoryKind::Shared } else { MemoryKind::Emulated };
        self.producers.insert(client);
        self.feed(Input::ProducerConnected { client, peer, memory });
    }

    fn connect_consumer(&mut self) {
        let Some((client, peer)) = self.new_client() else { return };
        self.consumers.insert(client);
        self.feed(Input::ConsumerConnected { client, peer });
    }

    fn new_client(&mut self) -> Option<(ClientId, Peer)> {
        if self.producers.len() + self.consumers.len() >= MAX_CLIENTS {
            return None;
        }
        self.last_client += 1;
        let uid = i32::from(self.script.u8() % 3);
        Some((ClientId(self.last_client), Peer { uid, pid: Some(uid + 1), machine_id: 0 }))
    }

    fn producer_call(&mut self) {
        let Some(client) = self.pick(|world| &mut world.producers) else { return };
        let id = self.script.method(&producer_port::SERVICE);
        let request = self.script.string();
        let Some(method) = ProducerCall::read(id, request) else { return };
        let call = self.new_call(client);
        self.feed(Input::ProducerCall { call, method, offered: None });
    }

    fn consumer_call(&mut self) {
        let Some(client) = self.pick(|world| &mut world.consumers) else { return };
        let id = self.script.method(&consumer_port::SERVICE);
        let request = self.script.string();
        let Some(method) = ConsumerCall::read(id, request) else { return };
        let config = match method {
            ConsumerCall::EnableTracing(_) => {
                EnableTracingRequest::decode(request).ok().and_then(|request| request.trace_config)
            }
            ConsumerCall::ChangeTraceConfig(_) => {
                ChangeTraceConfigRequest::decode(request).ok().and_then(|request| request.trace_config)
            }
            _ => None,
        };
        if config.is_some_and(|config| wants_too_much(&config)) {
            return;
        }
        let file_attached = self.script.u8() % 4 == 0;
        let call = self.new_call(client);
        self.feed(Input::ConsumerCall { call, method, file_attached });
    }

    fn new_call(&mut self, client: ClientId) -> CallId {
        self.last_request += 1;
        CallId { client, request: self.last_request }
    }

    /// Up to 4 s pass, timers expire in their order.
    fn pass_time(&mut self) {
        let ns = u64::from(self.script.u16()) << 16;
        self.now.boottime_ns += ns;
        self.now.monotonic_ns += ns;
        let mut due: Vec<(u64, TimerId)> = self
            .timers
            .iter()
            .filter(|&(_, &at)| at <= self.now.monotonic_ns)
            .map(|(&timer, &at)| (at, timer))
            .collect();
        due.sort_unstable();
        for (_, timer) in due {
            if self.timers.remove(&timer).is_some() {
                self.feed(Input::TimerExpired(timer));
            }
        }
    }

    fn pick(&mut self, of: impl FnOnce(&mut Self) -> &mut BTreeSet<ClientId>) -> Option<ClientId> {
        let number = usize::from(self.script.u8());
        let clients = of(self);
        let count = clients.len();
        clients.iter().nth(number.checked_rem(count)?).copied()
    }

    /// Feeds an input and carries out its outputs.
    fn feed(&mut self, input: Input<'_>) {
        let mut out = Outputs::new();
        self.service.handle(&self.now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                    let buffer = self.region(size_bytes, page_size_bytes);
                    let buffer = buffer.map(|region| Box::new(region) as Box<dyn esatto_service::SharedBuffer>);
                    self.service.handle(&self.now, Input::SharedBufferCreated { client, buffer }, &mut out);
                }
                Output::CloseClient { client, .. } => {
                    if self.producers.remove(&client) {
                        self.service.handle(&self.now, Input::ProducerDisconnected(client), &mut out);
                    } else if self.consumers.remove(&client) {
                        self.service.handle(&self.now, Input::ConsumerDisconnected(client), &mut out);
                    }
                }
                Output::AwaitReady(client) if self.consumers.contains(&client) => {
                    self.service.handle(&self.now, Input::Ready(client), &mut out);
                }
                Output::SetTimer { timer, at_ns, .. } => {
                    assert!(self.timers.insert(timer, at_ns).is_none(), "a timer's name is never used again");
                }
                Output::CancelTimer(timer) => {
                    self.timers.remove(&timer);
                }
                Output::AdoptFile { file, .. } => {
                    assert!(self.files.insert(file), "a file's name is never used again");
                }
                Output::CreateFile { file, .. } => {
                    let failed = self.script.u8() % 4 == 1;
                    if !failed {
                        assert!(self.files.insert(file), "a file's name is never used again");
                    }
                    let result = if failed { Err("no".to_owned()) } else { Ok(()) };
                    self.service.handle(&self.now, Input::FileOpened { file, result }, &mut out);
                }
                Output::WriteFile { file, .. } => {
                    assert!(self.files.contains(&file), "only open files are written to");
                    let result = if self.script.u8() % 4 == 1 { Err("full".to_owned()) } else { Ok(()) };
                    self.service.handle(&self.now, Input::FileWritten { file, result }, &mut out);
                }
                Output::SetPriority { change, .. } => {
                    let result = if self.script.u8() % 4 == 1 { Err("no".to_owned()) } else { Ok(()) };
                    self.service.handle(&self.now, Input::PrioritySet { change, result }, &mut out);
                }
                Output::CopyFile { from, to } => {
                    assert!(self.files.contains(&from) && self.files.contains(&to), "only open files are copied");
                    let result = if self.script.u8() % 4 == 1 { Err("full".to_owned()) } else { Ok(()) };
                    self.service.handle(&self.now, Input::FileCopied { file: to, result }, &mut out);
                }
                Output::CloseFile(file) => {
                    assert!(self.files.remove(&file), "only open files are closed");
                }
                _ => {}
            }
        }
    }

    /// Shared memory that begins with bytes of the script.
    fn region(&mut self, size_bytes: usize, page_size_bytes: usize) -> Option<ServiceRegion> {
        if size_bytes > MAX_REGION_BYTES {
            return None;
        }
        let mut bytes = vec![0; size_bytes];
        let content = self.script.string();
        let len = content.len().min(size_bytes);
        bytes[..len].copy_from_slice(&content[..len]);
        let page_size = PageSize::new(page_size_bytes).ok()?;
        ServiceRegion::new(Arc::new(PrivateRegion::from_bytes(&bytes)), page_size).ok()
    }
}

fn wants_too_much(config: &TraceConfig) -> bool {
    config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum::<u64>() > MAX_BUFFERS_KB
}
