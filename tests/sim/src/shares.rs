//! Scenario for fair shares: many clients of a few users take as much as they can, and new users
//! must still get their share (`docs/bounds.md`).
//!
//! The bounds are too large for the few inputs of a seed. Therefore one seed in four also has this
//! scenario, with a service whose shares are small.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use std::collections::BTreeMap;

use esatto_protozero::Owned;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{CloneSessionRequest, DataSourceConfig, EnableTracingResponseReader, TraceConfig};
use esatto_service::holdings::{self, Held, Shared};
use esatto_service::{CallId, ClientId, ConsumerCall, Input, MemoryKind, Output, Outputs, Peer, ProducerCall, Service};

use crate::pb::Pb;
use crate::rng::Rng;
use crate::world::{World, now_at, service_config};
use crate::worst::chunk;

/// One seed in this many has the scenario, so that it takes a small part of the time.
const ONE_SEED_IN: u64 = 4;

/// Steps of the scenario.
const STEPS: u64 = 60;

/// Sessions and clones that a user may have, and that all may have.
const SESSIONS: (u64, u64) = (5, 25);
const CLONES: (u64, u64) = (10, 30);

/// The number of things that each client may have, and the number that all may have beyond that.
fn bounds(what: Shared) -> (u64, u64) {
    match what {
        Shared::Sessions | Shared::RisingSessions | Shared::Clones => (0, u64::MAX),
        Shared::Writers => (512, 1 << 20),
        Shared::Instances(_) => (16, 16 << 10),
        Shared::Sequences(_) => (64, 1 << 17),
        Shared::GuardedNames => (0, 1024),
    }
}

/// The same with small shares.
fn small_bounds(what: Shared) -> (u64, u64) {
    let (each, pool) = bounds(what);
    (each.min(4), pool.min(256))
}

/// The holder of a share: a user of this machine, or `None` for all other machines together.
fn holder(peer: &Peer) -> Option<i32> {
    (peer.machine_id == 0).then_some(peer.uid)
}

/// Checks that no user and no client has more than a share.
fn assert_shares(held: &[Held], bounds: fn(Shared) -> (u64, u64)) {
    let mut of_users = BTreeMap::<_, (u64, u64)>::new();
    let mut of_all = BTreeMap::<_, (u64, u64)>::new();
    for Held { what, peer, count } in held {
        let extra = count.saturating_sub(bounds(*what).0);
        for sum in [of_users.entry((*what, holder(peer))).or_default(), of_all.entry(*what).or_default()] {
            *sum = (sum.0 + count, sum.1 + extra);
        }
    }
    for ((what, user), (count, extra)) in of_users {
        let is_too_much = match what {
            Shared::Sessions | Shared::RisingSessions => count > SESSIONS.0,
            Shared::Clones => count > CLONES.0 && user != Some(0),
            _ => extra > bounds(what).1 / 2,
        };
        assert!(!is_too_much, "shares: user {user:?} has {count} of {what:?}, {extra} of the pool");
    }
    for (what, (count, extra)) in of_all {
        let is_too_much = match what {
            Shared::Sessions | Shared::RisingSessions => count > SESSIONS.1,
            Shared::Clones => count > CLONES.1,
            _ => extra > bounds(what).1,
        };
        assert!(!is_too_much, "shares: all have {count} of {what:?}, {extra} of the pool");
    }
}

impl World {
    pub(crate) fn assert_shares(&self) {
        assert_shares(&self.service.held(), bounds);
    }
}

/// Guard that keeps shares small. Its drop makes them large again, also after a panic.
struct Small;

impl Small {
    fn begin() -> Self {
        holdings::make_shares_small(true);
        Self
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        holdings::make_shares_small(false);
    }
}

/// Runs the scenario of a seed, if it has one.
///
/// # Panics
///
/// If a holder has more than a share, or a new user does not get one.
pub fn run(seed: u64) {
    if seed % ONE_SEED_IN != 1 {
        return;
    }
    let _small = Small::begin();
    let mut crowds = Crowds::new(seed);
    for _ in 0..STEPS {
        crowds.step();
        assert_shares(&crowds.service.held(), small_bounds);
        if crowds.rng.one_in(20) {
            crowds.newcomer_arrives();
        }
    }
    crowds.newcomer_arrives();
    crowds.everybody_leaves();
}

/// Writers of a producer of the scenario have ids up to this.
const WRITERS: u64 = 300;

/// Entries for the data source in each config.
const ENTRIES: u64 = 2;

#[derive(Clone, Copy, Debug)]
struct Member {
    client: ClientId,
    peer: Peer,
}

/// The users, and the service for which they compete.
struct Crowds {
    service: Service,
    outputs: Outputs,
    rng: Rng,
    last_id: u64,
    producers: Vec<Member>,
    consumers: Vec<Member>,
}

impl Crowds {
    fn new(seed: u64) -> Self {
        // A separate generator, so that the seed's world does the same as before.
        let rng = Rng::new(!seed);
        let (producers, consumers) = (Vec::new(), Vec::new());
        Self {
            service: Service::new(service_config(seed)),
            outputs: Outputs::new(),
            rng,
            last_id: 0,
            producers,
            consumers,
        }
    }

    fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Hands an input in. Returns the first reply to its call.
    fn feed(&mut self, input: Input<'_>, call: Option<CallId>) -> Option<Vec<u8>> {
        self.service.handle(&now_at(1_000_000_000), input, &mut self.outputs);
        let mut first = None;
        while let Some(output) = self.outputs.pop() {
            if let Output::Reply(reply) = output {
                if call == Some(reply.call) && first.is_none() {
                    first = Some(reply.body.as_bytes().to_vec());
                }
            }
        }
        first
    }

    fn produce(&mut self, client: ClientId, method: u32, args: &[u8]) {
        let call = CallId { client, request: self.id() };
        if let Some(method) = ProducerCall::read(method, args) {
            self.feed(Input::ProducerCall { call, method, offered: None }, None);
        }
    }

    fn consume(&mut self, client: ClientId, method: u32, args: &[u8]) -> Option<Vec<u8>> {
        let call = CallId { client, request: self.id() };
        let method = ConsumerCall::read(method, args)?;
        self.feed(Input::ConsumerCall { call, method, file_attached: false }, Some(call))
    }

    /// Draws one of few users, mostly the same one.
    fn some_peer(&mut self) -> Peer {
        let local = |uid| Peer { uid, pid: None, machine_id: 0 };
        match self.rng.below(10) {
            0 => local(1002),
            1 | 2 => local(1001),
            // A remote client may claim any user.
            3 => Peer { uid: self.rng.pick(&[0, 1000]), pid: None, machine_id: 1 + self.rng.below(50) as u32 },
            _ => local(1000),
        }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..=2 => {
                let peer = self.some_peer();
                let producer = self.new_producer(peer);
                self.register_data_source(producer);
            }
            3 => {
                for _ in 0..self.rng.below(30) {
                    let Some(producer) = self.some_producer() else { return };
                    self.register_data_source(producer);
                }
            }
            4 | 5 => {
                let Some(producer) = self.some_producer() else { return };
                for _ in 0..self.rng.below(WRITERS) {
                    let writer = 1 + self.rng.below(WRITERS);
                    self.register_writer(producer, writer);
                }
            }
            6 => {
                let Some(producer) = self.some_producer() else { return };
                for _ in 0..self.rng.below(40) {
                    let request = Pb::default().int(1, 1 + self.rng.below(WRITERS));
                    self.produce(producer.client, producer_port::method::UnregisterTraceWriter::METHOD, &request.0);
                }
            }
            7 => self.write_and_read(),
            8 | 9 => {
                let peer = Peer { machine_id: 0, ..self.some_peer() };
                for _ in 0..self.rng.below(6) {
                    let consumer = self.new_consumer(peer);
                    match self.rng.below(4) {
                        0 => self.clone_one(consumer),
                        _ => drop(self.enable(consumer, false)),
                    }
                }
            }
            10 => {
                let peer = Peer { machine_id: 0, ..self.some_peer() };
                for _ in 0..self.rng.below(20) {
                    let consumer = self.new_consumer(peer);
                    self.enable(consumer, true);
                    self.leave(consumer);
                }
            }
            _ => {
                let Some(at) = self.some_index() else { return };
                if at < self.producers.len() {
                    let producer = self.producers.swap_remove(at);
                    self.feed(Input::ProducerDisconnected(producer.client), None);
                } else {
                    let consumer = self.consumers[at - self.producers.len()];
                    self.leave(consumer);
                }
            }
        }
    }

    fn some_index(&mut self) -> Option<usize> {
        let all = self.producers.len() + self.consumers.len();
        (all > 0).then(|| self.rng.index(all))
    }

    fn some_producer(&mut self) -> Option<Member> {
        (!self.producers.is_empty()).then(|| self.rng.pick(&self.producers))
    }

    fn new_producer(&mut self, peer: Peer) -> Member {
        let client = ClientId(self.id());
        self.feed(Input::ProducerConnected { client, peer, memory: MemoryKind::Emulated }, None);
        self.produce(client, producer_port::method::InitializeConnection::METHOD, &Pb::default().bytes(3, b"crowd").0);
        self.produce(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
        let producer = Member { client, peer };
        self.producers.push(producer);
        producer
    }

    fn new_consumer(&mut self, peer: Peer) -> Member {
        let client = ClientId(self.id());
        self.feed(Input::ConsumerConnected { client, peer }, None);
        let consumer = Member { client, peer };
        self.consumers.push(consumer);
        consumer
    }

    fn leave(&mut self, consumer: Member) {
        self.consumers.retain(|other| other.client != consumer.client);
        self.feed(Input::ConsumerDisconnected(consumer.client), None);
    }

    /// Removes a client that nothing waits for: no flush, no acknowledgement.
    fn register_data_source(&mut self, producer: Member) {
        let descriptor = Pb::default().bytes(1, b"ds").int(9, 1);
        let request = Pb::default().bytes(1, &descriptor.0);
        self.produce(producer.client, producer_port::method::RegisterDataSource::METHOD, &request.0);
    }

    fn register_writer(&mut self, producer: Member, writer: u64) {
        let request = Pb::default().int(1, writer).int(2, 1);
        self.produce(producer.client, producer_port::method::RegisterTraceWriter::METHOD, &request.0);
    }

    /// Commits chunks of many writers to every session, and reads each session.
    fn write_and_read(&mut self) {
        let Some(producer) = self.some_producer() else { return };
        let buffers: Vec<u16> =
            self.service.session_views().iter().flat_map(|session| session.buffers.clone()).collect();
        for buffer in buffers {
            let first = self.rng.below(WRITERS) as u16 + 1;
            let mut request = Pb::default();
            for writer in first..first + 60 {
                request = request.bytes(1, &chunk(buffer, writer, 0, 0, 1).0);
            }
            self.produce(producer.client, producer_port::method::CommitData::METHOD, &request.0);
        }
        for consumer in self.consumers.clone() {
            self.consume(consumer.client, consumer_port::method::ReadBuffers::METHOD, &[]);
        }
    }

    /// Begins a session. Returns the reason if it is refused.
    fn enable(&mut self, consumer: Member, is_guarded: bool) -> Option<String> {
        let config = DataSourceConfig { name: Some("ds".into()), ..Default::default() };
        let source = DataSource { config: Some(Box::new(config)), ..Default::default() };
        let name = self.id();
        let config = TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(16), ..Default::default() }],
            data_sources: vec![source; ENTRIES as usize],
            enable_extra_guardrails: is_guarded.then_some(true),
            unique_session_name: is_guarded.then(|| format!("guarded {name}").into()),
            ..Default::default()
        };
        let request = Pb::default().bytes(1, &config.encode());
        let reply = self.consume(consumer.client, consumer_port::method::EnableTracing::METHOD, &request.0)?;
        let error = EnableTracingResponseReader::new(&reply).error().unwrap_or_default();
        Some(String::from_utf8_lossy(error).into_owned())
    }

    fn clone_one(&mut self, consumer: Member) {
        let sessions = self.service.session_views();
        if sessions.is_empty() {
            return;
        }
        let session_id = Some(sessions[self.rng.index(sessions.len())].id);
        let request = CloneSessionRequest { session_id, ..Default::default() };
        self.consume(consumer.client, consumer_port::method::CloneSession::METHOD, &request.encode());
    }

    /// Returns the number of things of one kind that a client has, by session.
    fn held_by(&self, peer: &Peer, is_wanted: impl Fn(Shared) -> bool) -> Vec<u64> {
        let held = self.service.held();
        held.iter().filter(|held| held.peer == *peer && is_wanted(held.what)).map(|held| held.count).collect()
    }

    /// Checks that a new user gets a session, perhaps a guarded one. Checks that a producer of this
    /// user gets writers, and an instance for each entry of each session. Then both leave.
    fn newcomer_arrives(&mut self) {
        let peer = Peer { uid: 5000 + self.id() as i32, pid: Some(1), machine_id: 0 };
        for is_guarded in [true, false] {
            let consumer = self.new_consumer(peer);
            let refusal = self.enable(consumer, is_guarded);
            assert_eq!(refusal, None, "shares: a newcomer gets no session, guarded: {is_guarded}");
            if is_guarded {
                self.leave(consumer);
            }
        }
        let producer = self.new_producer(peer);
        self.register_data_source(producer);
        let sessions = self.service.held().iter().filter(|held| held.what == Shared::Sessions).count();
        let instances = self.held_by(&peer, |what| matches!(what, Shared::Instances(_)));
        assert_eq!(instances, vec![ENTRIES; sessions], "shares: a newcomer gets no instances");
        let (each, _) = small_bounds(Shared::Writers);
        for writer in 1..=each {
            self.register_writer(producer, writer);
        }
        assert_eq!(self.held_by(&peer, |what| what == Shared::Writers), [each], "shares: a newcomer gets no writers");
        self.producers.retain(|other| other.client != producer.client);
        self.feed(Input::ProducerDisconnected(producer.client), None);
        for consumer in self.consumers.clone() {
            if consumer.peer == peer {
                self.leave(consumer);
            }
        }
    }

    /// Checks that shares that were given back are available again.
    fn everybody_leaves(&mut self) {
        for producer in core::mem::take(&mut self.producers) {
            self.feed(Input::ProducerDisconnected(producer.client), None);
        }
        for consumer in core::mem::take(&mut self.consumers) {
            self.leave(consumer);
        }
        self.service.assert_consistent();
        let peer = Peer { uid: 1000, pid: Some(1), machine_id: 0 };
        let producer = self.new_producer(peer);
        let (each, pool) = small_bounds(Shared::Writers);
        for writer in 1..=WRITERS {
            self.register_writer(producer, writer);
        }
        // The user may have half of the pool, and one producer a share of that: a third of the
        // pool.
        let expected = each + pool / 3;
        assert_eq!(
            self.held_by(&peer, |what| what == Shared::Writers),
            [expected],
            "shares: what was given back is gone"
        );
    }
}
