//! The world around the service: time, events, and clients that connect and disconnect.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use esatto_service::{CallId, FileId, Now, Outputs, Service, ServiceConfig, SystemFacts, TimerClock, TimerId};

use crate::clones::FileCopy;
use crate::connection::{Client, Port};
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
        service.keep_names(10);
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

    /// Lets a client act.
    pub(crate) fn with_actor(&mut self, client: usize, act: impl FnOnce(&mut Actor, &mut Self)) {
        if let Some(mut actor) = self.actors[client].take() {
            act(&mut actor, self);
            if self.clients[client].is_alive {
                self.actors[client] = Some(actor);
            }
        }
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
