//! Clones come, go and are given up in every order, from one seed: each call is answered once, and
//! nothing is left behind.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use std::collections::BTreeSet;

use esatto_protozero::Owned;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{CloneSessionRequest, QueryServiceStateResponse, TraceConfig};
use esatto_service::{CallId, ClientId, Input};

use crate::clones::{answer, ask, by_id};
use crate::world::{FakeProducer, World, buffer, config, packet};

/// A generator that repeats (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

struct Storm {
    random: Random,
    world: World,
    root: ClientId,
    producers: Vec<FakeProducer>,
    consumers: Vec<ClientId>,
    /// Calls of CloneSession whose answer was not seen yet.
    open: BTreeSet<CallId>,
    made: usize,
    refused: usize,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut world = World::new();
        let root = world.consumer_of(0);
        let producers: Vec<FakeProducer> = ["fast", "slow"].map(|name| world.producer(name)).into();
        for producer in &producers {
            world.register(producer, "ds");
            world.register(producer, "moved");
        }
        Self {
            random: Random(seed),
            world,
            root,
            producers,
            consumers: Vec::new(),
            open: BTreeSet::new(),
            made: 0,
            refused: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..=2 => self.enable(),
            3..=6 => self.clone(),
            7..=8 => self.acknowledge(),
            9 => self.commit(),
            10 => {
                let ms = self.random.below(3000);
                self.world.advance_ms(ms);
            }
            11 => self.call(method::FreeBuffers::METHOD),
            12 => self.call(method::DisableTracing::METHOD),
            13 => self.call(method::ReadBuffers::METHOD),
            14 => self.disconnect(),
            _ => {
                self.world.file_error = self.random.chance(20).then(|| "no space".to_owned());
                self.world.priority_error = self.random.chance(20).then(|| "not permitted".to_owned());
                self.world.copies_are_slow = self.random.chance(50);
                self.world.opening_is_slow = self.random.chance(50);
                self.world.finish_slow_work();
            }
        }
        self.look_at_answers();
    }

    fn consumer(&mut self) -> ClientId {
        if self.consumers.len() < 12 && self.random.chance(40) {
            let uid = self.random.below(3) as i32;
            self.consumers.push(self.world.consumer_of(uid));
        }
        match self.consumers.len() {
            0 => {
                self.consumers.push(self.world.consumer_of(0));
                self.consumers[0]
            }
            len => self.consumers[self.random.below(len as u64) as usize],
        }
    }

    fn enable(&mut self) {
        let consumer = self.consumer();
        let moved = BufferConfig {
            transfer_on_clone: Some(true),
            clear_before_clone: self.random.chance(30).then_some(true),
            ..buffer(16)
        };
        let mut config = TraceConfig { buffers: vec![buffer(16), moved], ..config(&["ds", "moved"]) };
        config.data_sources[1].config.as_mut().unwrap().target_buffer = Some(1);
        config.write_into_file = self.random.chance(50).then_some(true);
        let has_path = config.write_into_file.is_some() && self.random.chance(50);
        config.output_path = has_path.then(|| "/x".into());
        config.max_file_size_bytes = self.random.chance(20).then_some(2000);
        config.exclusive_prio = self.random.chance(3).then(|| self.random.below(3) as u32);
        config.duration_ms = self.random.chance(20).then_some(2000);
        if self.random.chance(20) {
            config.priority_boost = Some(esatto_schema::PriorityBoostConfig {
                policy: Some(esatto_schema::priority_boost_config::BoostPolicy::POLICY_SCHED_FIFO),
                priority: Some(self.random.below(3) as u32 + 1),
                ..Default::default()
            });
        }
        self.world.enable_with(consumer, &config, !has_path);
    }

    fn clone(&mut self) {
        // Mostly a consumer without a session asks for a session that exists.
        let consumer = if self.consumers.len() < 12 { self.world.consumer_of(0) } else { self.consumer() };
        if !self.consumers.contains(&consumer) {
            self.consumers.push(consumer);
        }
        let sessions = self.sessions();
        let id = match sessions.len() {
            0 => 1,
            len => sessions[self.random.below(len as u64) as usize] + u64::from(self.random.chance(5)),
        };
        let request = CloneSessionRequest { skip_trace_filter: Some(true), ..by_id(id) };
        let call = ask(&mut self.world, consumer, &request);
        self.open.insert(call);
    }

    fn sessions(&mut self) -> Vec<u64> {
        let call = self.world.consumer_call(self.root, method::QueryServiceState::METHOD, &[]);
        let reply = self.world.replies.remove(&call).unwrap();
        let state = QueryServiceStateResponse::decode(reply[0].body.as_bytes()).unwrap().service_state.unwrap();
        state.tracing_sessions.iter().map(|session| session.id.unwrap()).collect()
    }

    fn acknowledge(&mut self) {
        let index = self.random.below(self.producers.len() as u64) as usize;
        let producer = self.producers[index].clone();
        for command in self.world.commands(&producer) {
            if let Some(flush) = command.flush.filter(|_| self.random.chance(80)) {
                self.world.acknowledge_flush(&producer, flush.request_id.unwrap());
            }
        }
    }

    fn commit(&mut self) {
        let index = self.random.below(self.producers.len() as u64) as usize;
        let (buffer, chunk) = (1 + self.random.below(60), self.random.below(1000));
        let mut producer = self.producers[index].clone();
        if self.world.memories.contains_key(&producer.client) {
            self.world.commit(&mut producer, buffer as u32, 1, chunk as u32, &[&packet("x")]);
        }
        self.producers[index] = producer;
    }

    fn call(&mut self, method: u32) {
        let consumer = self.consumer();
        self.world.consumer_call(consumer, method, &[]);
    }

    fn disconnect(&mut self) {
        let consumer = self.consumer();
        self.consumers.retain(|&other| other != consumer);
        self.world.feed(Input::ConsumerDisconnected(consumer));
        self.open.retain(|call| call.client != consumer);
    }

    /// Two calls of one consumer do not wait at the same time; that none is answered twice is the
    /// world's to check.
    fn look_at_answers(&mut self) {
        let world = &self.world;
        let (made, refused) = (&mut self.made, &mut self.refused);
        self.open.retain(|&call| match answer(world, call) {
            Some(response) if response.success == Some(true) => {
                *made += 1;
                false
            }
            Some(_) => {
                *refused += 1;
                false
            }
            None => !world.rejected.contains(&call),
        });
        let waiting: BTreeSet<ClientId> = self.open.iter().map(|call| call.client).collect();
        assert_eq!(waiting.len(), self.open.len(), "an earlier call is rejected");
    }

    /// With time, everything that waits is answered; when all are gone, nothing is left.
    fn end(mut self) -> (usize, usize) {
        self.world.copies_are_slow = false;
        self.world.opening_is_slow = false;
        self.world.priority_error = None;
        self.world.finish_slow_work();
        self.world.advance_ms(10_000);
        self.look_at_answers();
        assert_eq!(self.open, BTreeSet::new(), "never answered");
        for consumer in core::mem::take(&mut self.consumers) {
            self.world.feed(Input::ConsumerDisconnected(consumer));
        }
        assert!(self.sessions().is_empty());
        assert_eq!((self.world.timers(), self.world.priority), (0, None));
        let closed: BTreeSet<_> = self.world.closed_files.iter().collect();
        assert_eq!(closed, self.world.files.keys().collect(), "every file is closed");
        (self.made, self.refused)
    }
}

#[test]
fn disconnected_clients_leave_nothing() {
    let (mut made, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut storm = Storm::new(seed);
        for _ in 0..400 {
            storm.step();
        }
        let counts = storm.end();
        made += counts.0;
        refused += counts.1;
    }
    assert!(made > 300 && refused > 300, "{made} clones made, {refused} refused");
}
