//! The world around the service: time, events, and connections that delay and cut their bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use esatto_ipc::ports::{CONSUMER_PORT, PRODUCER_PORT, RELAY_PORT};
use esatto_ipc::{FrameDecoder, Host, frame::encode};
use esatto_service::{
    CallId, ClientId, FileId, MemoryKind, Now, Outputs, Peer, Service, ServiceConfig, SystemFacts, TimerClock, TimerId,
};
use esatto_shm::PrivateRegion;

use crate::clones::FileCopy;
use crate::consumer::Consumer;
use crate::files::SimFile;
use crate::hostile::Hostile;
use crate::hostile_consumer::HostileConsumer;
use crate::memory::{Seen, see};
use crate::model::Model;
use crate::producer::Producer;
use crate::profile::{MS, Profile};
use crate::relay::Relay;
use crate::rng::Rng;
use crate::work::About;
use crate::worst::Worst;

/// Uid of the service.
pub const SERVICE_UID: i32 = 4242;

/// An event, which happens at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Bytes of a client arrive at the service.
    Up(usize),
    /// Bytes of the service arrive at a client.
    Down(usize),
    /// The end of a connection arrives at the service.
    Hangup(usize),
    /// A client does its next step.
    Act(usize),
    /// A timer expires.
    Timer(u64),
    /// A client can take more.
    Ready(usize),
    /// Shared memory was made.
    Memory(usize),
    /// A file was created.
    Opened(u64),
    /// A file took, or refused, the oldest batch.
    Written(u64),
    /// A file was copied, or not.
    Copied(u64),
    /// A change of priority was made, or not.
    Priority(u64),
    /// The deadline of a call's answer.
    Deadline(usize, u64),
    /// The machine sleeps, or its clock is set.
    ClockJump,
    /// A new client connects.
    Arrival,
}

/// The kinds of clients.
#[derive(Debug)]
pub enum Actor {
    /// An honest producer, with the faults of the profile.
    Honest(Box<Producer>),
    /// A hostile producer.
    Hostile(Box<Hostile>),
    /// A producer that chooses the worst order.
    Worst(Box<Worst>),
    /// A consumer.
    Consumer(Box<Consumer>),
    /// A hostile consumer.
    HostileConsumer(Box<HostileConsumer>),
    /// A relay of another machine.
    Relay(Box<Relay>),
}

/// The ports of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// The producer port.
    Producer,
    /// The consumer port.
    Consumer,
    /// The relay port.
    Relay,
}

/// An attachment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// The descriptor of a trace file.
    File,
    /// Memory of the producer.
    Memory,
}

/// A region that a producer and the service share.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    /// The memory.
    pub region: Arc<PrivateRegion>,
    /// Bytes of a page.
    pub page_size: usize,
}

/// A connection, both ends of it.
#[derive(Debug)]
pub struct Client {
    /// The service's name for it.
    pub id: ClientId,
    /// Credentials.
    pub peer: Peer,
    /// The way of its chunks.
    pub memory_kind: MemoryKind,
    /// The port that it is connected to.
    pub port: Port,
    /// True if it writes into memory while the service reads it.
    pub is_hostile: bool,
    pub(crate) host: Host,
    pub(crate) decoder: FrameDecoder,
    pub(crate) introduced: bool,
    pub(crate) last_call: u64,
    up: VecDeque<(u64, Vec<u8>)>,
    down: VecDeque<(u64, Vec<u8>)>,
    down_decoder: FrameDecoder,
    sent_bytes: u64,
    attached: VecDeque<(u64, Attached)>,
    next_request: u64,
    /// True while the service's end is open.
    pub is_open: bool,
    /// True while the client lives.
    pub is_alive: bool,
    /// Number of calls of RegisterDataSource that the service took.
    pub(crate) registered: usize,
    /// The memory that the producer brought or was given.
    pub memory: Option<SharedMemory>,
}

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The method.
    pub kind: CallKind,
    /// The client's number for it, or `None` if the client wants no reply.
    pub request_id: Option<u64>,
}

/// Methods whose answers the model checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `GetAsyncCommand`.
    Commands,
    /// `EnableTracing`.
    Enable,
    /// `ReadBuffers`.
    Read,
    /// `Flush`.
    Flush,
    /// `GetTraceStats`.
    Stats,
    /// `ObserveEvents`.
    Observe,
    /// `CommitData`.
    Commit,
    /// `CloneSession`.
    Clone,
    /// Any method with one immediate answer.
    Simple,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls of `handle`.
    pub inputs: u64,
    /// Producers that connected.
    pub producers: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Number of sessions that are clones.
    pub clones: u64,
    /// Packets of producers that were read and compared.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that were overwritten, discarded or given up, and marked.
    pub losses: u64,
    /// Scrapes that took more than one step.
    pub long_scrapes: u64,
    /// Greatest number of bytes that the service held.
    pub peak_bytes: u64,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients connect and act.
    Running,
    /// No new client connects, and sessions end.
    Closing,
    /// All clients leave.
    Leaving,
}

/// The simulated world.
#[derive(Debug)]
pub struct World {
    /// The random numbers.
    pub rng: Rng,
    /// The faults of this seed.
    pub profile: Profile,
    /// `CLOCK_MONOTONIC`.
    pub now_ns: u64,
    /// Nanoseconds by which CLOCK_BOOTTIME is ahead.
    pub suspended_ns: u64,
    realtime_ahead_ns: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    pub(crate) service: Service,
    pub(crate) outputs: Outputs,
    /// The events inside of the last call of `Service::handle`.
    pub(crate) seen: Vec<Seen>,
    pub(crate) clients: Vec<Client>,
    pub(crate) actors: Vec<Option<Actor>>,
    pub(crate) timers: BTreeMap<TimerId, (TimerClock, u64)>,
    pub(crate) files: BTreeMap<FileId, SimFile>,
    /// Copies under way, by their target.
    pub(crate) copies: BTreeMap<FileId, FileCopy>,
    pub(crate) calls: BTreeMap<CallId, Pending>,
    pub(crate) model: Model,
    /// Counts so far.
    pub tally: Tally,
    /// True if events are printed.
    pub is_traced: bool,
    pub(crate) phase: Phase,
    /// Keys of detached sessions.
    pub(crate) detached: Vec<(i32, String)>,
    /// Sessions that a trigger wants cloned, and the names of the triggers.
    pub(crate) clone_hits: Vec<(u64, Vec<u8>)>,
    pub(crate) next_name: u64,
    /// Bytes of the call in this step.
    pub(crate) input_bytes: usize,
    /// The state that this step is about.
    pub(crate) about: About,
    /// Work units of this step.
    pub(crate) work: u64,
}

/// Prints a line of the event log.
macro_rules! trace {
    ($world:expr, $($text:tt)*) => {
        if $world.is_traced {
            println!("{:>14.6} ms  {}", $world.now_ns as f64 / 1e6, format_args!($($text)*));
        }
    };
}
pub(crate) use trace;

impl World {
    /// Creates the world of a seed, before its first event.
    pub fn new(seed: u64, is_traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let profile = Profile::draw(&mut rng);
        let mut service = Service::new(service_config(rng.bits()));
        service.observe(|step| see(Seen::Step(step)));
        Self {
            rng,
            profile,
            now_ns: 1_000 * MS,
            suspended_ns: 77 * MS,
            realtime_ahead_ns: 1_700_000_000_000 * MS,
            queue: BinaryHeap::new(),
            events: 0,
            service,
            outputs: Outputs::new(),
            seen: Vec::new(),
            clients: Vec::new(),
            actors: Vec::new(),
            timers: BTreeMap::new(),
            files: BTreeMap::new(),
            copies: BTreeMap::new(),
            calls: BTreeMap::new(),
            clone_hits: Vec::new(),
            model: Model::default(),
            tally: Tally::default(),
            is_traced,
            phase: Phase::Running,
            detached: Vec::new(),
            next_name: 0,
            input_bytes: 0,
            about: About::default(),
            work: 0,
        }
    }

    pub(crate) fn service_config(&self) -> ServiceConfig {
        service_config(0)
    }

    /// Returns the time of all clocks.
    pub fn now(&self) -> Now {
        let realtime_ns = self.now_ns + self.realtime_ahead_ns;
        Now {
            boottime_ns: self.now_ns + self.suspended_ns,
            realtime_coarse_ns: realtime_ns,
            realtime_ns,
            ..now_at(self.now_ns)
        }
    }

    /// Schedules an event in `delay_ns` nanoseconds.
    pub fn after(&mut self, delay_ns: u64, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((self.now_ns.saturating_add(delay_ns), self.events, event)));
    }

    /// Lets the next event happen. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(Reverse((at_ns, _, event))) = self.queue.pop() else { return false };
        self.now_ns = self.now_ns.max(at_ns);
        match event {
            Event::Up(client) => self.deliver_up(client),
            Event::Down(client) => self.deliver_down(client),
            Event::Hangup(client) => self.hung_up(client),
            Event::Act(client) => self.with_actor(client, |actor, world| match actor {
                Actor::Honest(producer) => producer.act(world),
                Actor::Hostile(hostile) => hostile.act(world),
                Actor::Worst(worst) => worst.act(world),
                Actor::Consumer(consumer) => consumer.act(world),
                Actor::HostileConsumer(consumer) => consumer.act(world),
                Actor::Relay(relay) => relay.act(world),
            }),
            Event::Timer(timer) => self.timer_is_due(TimerId(timer)),
            Event::Ready(client) => self.client_is_ready(client),
            Event::Memory(client) => self.memory_was_made(client),
            Event::Opened(file) => self.file_was_opened(FileId(file)),
            Event::Written(file) => self.file_was_written(FileId(file)),
            Event::Copied(file) => self.file_was_copied(FileId(file)),
            Event::Priority(change) => self.priority_was_set(change),
            Event::Deadline(client, request) => {
                let call = CallId { client: self.clients[client].id, request };
                let is_excused = !self.clients[client].is_open || self.model.excused.contains(&call);
                if let Some(pending) = self.calls.get(&call).filter(|_| !is_excused) {
                    panic!("every request is answered: {pending:?} of client {client} waits in vain");
                }
            }
            Event::ClockJump => self.jump_clocks(),
            Event::Arrival => self.somebody_arrives(),
        }
        true
    }

    /// Returns the time of the next event.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn jump_clocks(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        if self.rng.percent(50) {
            self.suspended_ns += self.rng.below(3_600_000 * MS);
            let boottime: Vec<(u64, u64)> = self
                .timers
                .iter()
                .filter(|(_, (clock, _))| *clock == TimerClock::Boottime)
                .map(|(id, (_, at_ns))| (id.0, *at_ns))
                .collect();
            for (timer, at_ns) in boottime {
                self.after(at_ns.saturating_sub(self.now_ns + self.suspended_ns), Event::Timer(timer));
            }
        } else {
            self.realtime_ahead_ns = self.rng.below(4_000_000_000_000 * MS);
        }
        trace!(self, "clocks jump");
        let again = self.rng.between(10 * MS, 2000 * MS);
        self.after(again, Event::ClockJump);
    }

    /// Adds a connection. The caller adds its actor.
    pub fn connect(&mut self, peer: Peer, memory_kind: MemoryKind, port: Port, is_hostile: bool) -> usize {
        let index = self.clients.len();
        let ports = match port {
            Port::Producer => PRODUCER_PORT,
            Port::Consumer => CONSUMER_PORT,
            Port::Relay => RELAY_PORT,
        };
        let ipc_peer = esatto_ipc::Peer::local(peer.uid as u32, peer.pid);
        self.clients.push(Client {
            id: ClientId(index as u64),
            peer,
            memory_kind,
            port,
            is_hostile,
            host: Host::new(Arc::new([ports]), ipc_peer),
            decoder: FrameDecoder::new(),
            introduced: false,
            last_call: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
            down_decoder: FrameDecoder::new(),
            sent_bytes: 0,
            attached: VecDeque::new(),
            next_request: 1,
            is_open: true,
            is_alive: true,
            registered: 0,
            memory: None,
        });
        self.actors.push(None);
        self.tally.producers += u64::from(port == Port::Producer);
        let mut bind = Vec::new();
        encode::bind_service(&mut bind, 1, ports.name).expect("a short name");
        self.send(index, bind, None);
        index
    }

    /// Calls a method for a client. Returns the number of the request.
    pub fn call(&mut self, client: usize, method: u32, args: &[u8], drop_reply: bool) -> u64 {
        self.call_with(client, method, args, drop_reply, None)
    }

    /// Does the same with an attachment.
    pub fn call_with(
        &mut self,
        client: usize,
        method: u32,
        args: &[u8],
        drop_reply: bool,
        attached: Option<Attached>,
    ) -> u64 {
        self.clients[client].next_request += 1;
        let request = self.clients[client].next_request;
        let mut frame = Vec::with_capacity(args.len() + 32);
        if encode::invoke_method(&mut frame, request, 1, method, args, drop_reply).is_ok() {
            self.send(client, frame, attached);
        }
        request
    }

    /// Sends bytes for a client. They arrive later, in order, perhaps in two pieces.
    pub fn send(&mut self, client: usize, bytes: Vec<u8>, attached: Option<Attached>) {
        if !self.clients[client].is_alive {
            return;
        }
        self.clients[client].sent_bytes += bytes.len() as u64;
        let end = self.clients[client].sent_bytes;
        self.clients[client].attached.extend(attached.map(|attached| (end, attached)));
        let mut pieces = [bytes, Vec::new()];
        if pieces[0].len() > 1 && self.rng.percent(self.profile.cut) {
            let at = self.rng.between(1, pieces[0].len() as u64 - 1) as usize;
            pieces[1] = pieces[0].split_off(at);
        }
        for piece in pieces {
            if !piece.is_empty() {
                let at_ns = self.arrival(client, true);
                self.clients[client].up.push_back((at_ns, piece));
                self.after(at_ns - self.now_ns, Event::Up(client));
            }
        }
    }

    /// Sends bytes from the service to a client.
    pub(crate) fn send_down(&mut self, client: usize, bytes: Vec<u8>) {
        if bytes.is_empty() || !self.clients[client].is_alive {
            return;
        }
        let at_ns = self.arrival(client, false);
        self.clients[client].down.push_back((at_ns, bytes));
        self.after(at_ns - self.now_ns, Event::Down(client));
    }

    /// Returns the time at which bytes that are sent now arrive: not before earlier bytes.
    fn arrival(&mut self, client: usize, up: bool) -> u64 {
        let delay_ns = if self.profile.delay_ns == 0 { 0 } else { self.rng.below(self.profile.delay_ns) };
        let client = &self.clients[client];
        let earlier = if up { client.up.back() } else { client.down.back() };
        (self.now_ns + delay_ns).max(earlier.map_or(0, |(at_ns, _)| *at_ns))
    }

    fn deliver_up(&mut self, client: usize) {
        while let Some((at_ns, _)) = self.clients[client].up.front() {
            if *at_ns > self.now_ns {
                break;
            }
            let Some((_, bytes)) = self.clients[client].up.pop_front() else { break };
            let mut rest = &bytes[..];
            while self.clients[client].is_open && !rest.is_empty() {
                let taken = self.clients[client].decoder.push(rest);
                rest = &rest[taken..];
                self.take_frames(client);
            }
        }
    }

    fn deliver_down(&mut self, index: usize) {
        while let Some((at_ns, _)) = self.clients[index].down.front() {
            if *at_ns > self.now_ns {
                break;
            }
            let Some((_, bytes)) = self.clients[index].down.pop_front() else { break };
            if !self.clients[index].is_alive {
                continue;
            }
            self.with_actor(index, |actor, world| {
                let mut decoder = core::mem::take(&mut world.clients[index].down_decoder);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let taken = decoder.push(rest);
                    rest = &rest[taken..];
                    while let Some(frame) = decoder.next_frame().expect("the service's frames are small enough") {
                        let esatto_ipc::FrameBody::InvokeMethodReply { success, has_more, body } = frame.body else {
                            continue;
                        };
                        let reply = ClientReply { request: frame.request_id, success, has_more, body };
                        match actor {
                            Actor::Honest(producer) => producer.receive(&reply, world),
                            Actor::Hostile(hostile) => hostile.receive(&reply, world),
                            Actor::Worst(worst) => worst.receive(&reply, world),
                            Actor::Consumer(consumer) => consumer.receive(&reply, world),
                            Actor::HostileConsumer(_) => {}
                            Actor::Relay(relay) => relay.receive(&reply),
                        }
                    }
                }
                world.clients[index].down_decoder = decoder;
            });
        }
    }

    fn with_actor(&mut self, client: usize, act: impl FnOnce(&mut Actor, &mut Self)) {
        if let Some(mut actor) = self.actors[client].take() {
            act(&mut actor, self);
            if self.clients[client].is_alive {
                self.actors[client] = Some(actor);
            }
        }
    }

    /// Returns the attachment of the frame that ends here.
    pub(crate) fn take_attached(&mut self, client: usize, end: u64) -> Option<Attached> {
        let client = &mut self.clients[client];
        let mut newest = None;
        while client.attached.front().is_some_and(|(at, _)| *at <= end) {
            newest = client.attached.pop_front().filter(|(at, _)| *at == end).map(|(_, attached)| attached);
        }
        newest
    }

    /// Ends a client suddenly. A part of the bytes on their way arrives, cut at any byte.
    pub fn crash(&mut self, client: usize) {
        trace!(self, "client {client} is gone");
        self.clients[client].is_alive = false;
        let mut kept = self.clients[client].up.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        if self.rng.percent(70) && kept > 0 {
            kept = self.rng.below(kept + 1);
        }
        let mut last_ns = self.now_ns;
        self.clients[client].up.retain_mut(|(at_ns, bytes)| {
            bytes.truncate(kept as usize);
            kept -= bytes.len() as u64;
            last_ns = last_ns.max(*at_ns);
            !bytes.is_empty()
        });
        self.after(last_ns - self.now_ns, Event::Hangup(client));
    }

    /// Ends a client in good order: everything that it sent arrives.
    pub fn leave(&mut self, client: usize) {
        trace!(self, "client {client} leaves");
        self.clients[client].is_alive = false;
        let last_ns = self.clients[client].up.back().map_or(self.now_ns, |(at_ns, _)| (*at_ns).max(self.now_ns));
        self.after(last_ns - self.now_ns, Event::Hangup(client));
    }

    fn somebody_arrives(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        let alive = |port| self.clients.iter().filter(|client| client.is_alive && client.port == port).count();
        let (producers, consumers) = (alive(Port::Producer), alive(Port::Consumer));
        if alive(Port::Relay) < self.profile.relays {
            Relay::connect(self);
        }
        if producers < self.profile.producers {
            self.new_producer();
        } else if consumers < self.profile.consumers {
            if self.profile.hostile_consumers != 0 && self.rng.percent(self.profile.hostile_consumers) {
                HostileConsumer::connect(self);
            } else {
                Consumer::connect(self);
            }
        }
        let again = self.rng.between(MS, 60 * MS);
        self.after(again, Event::Arrival);
    }

    /// Connects a producer of a kind that the profile has.
    pub fn new_producer(&mut self) {
        if self.profile.worst != 0 && self.rng.percent(self.profile.worst) {
            Worst::connect(self);
        } else if self.rng.percent(self.profile.hostile) {
            Hostile::connect(self);
        } else {
            Producer::connect(self);
        }
    }

    /// Returns a new number, for names.
    pub fn name(&mut self) -> u64 {
        self.next_name += 1;
        self.next_name
    }
}

/// Returns a time at which all clocks are equal.
pub(crate) fn now_at(now_ns: u64) -> Now {
    Now {
        boottime_ns: now_ns,
        realtime_coarse_ns: now_ns,
        monotonic_coarse_ns: now_ns,
        realtime_ns: now_ns,
        monotonic_ns: now_ns,
        monotonic_raw_ns: now_ns,
        tsc: Some(now_ns * 3),
    }
}

pub(crate) fn service_config(chance: u64) -> ServiceConfig {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&chance.to_le_bytes());
    ServiceConfig { uid: SERVICE_UID, version: "simulated".to_owned(), system: SystemFacts::default(), seed }
}

/// A reply as a client sees it.
#[derive(Clone, Copy, Debug)]
pub struct ClientReply<'a> {
    /// The client's number.
    pub request: u64,
    /// True if the call was not rejected.
    pub success: bool,
    /// True if more replies follow.
    pub has_more: bool,
    /// The message.
    pub body: &'a [u8],
}
