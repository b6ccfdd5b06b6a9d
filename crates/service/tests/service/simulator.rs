//! Many producers and consumers, everything that can go wrong, from one seed: a failing seed replays exactly.
//!
//! What must hold whatever happens: no panic; packets of a writer come in order and at most once, gaps are marked; calls are
//! answered at most once; when everybody is gone, nothing is left behind.

use std::collections::HashMap;

use esatto_protozero::Owned;
use esatto_schema::consumer_port::Method;
use esatto_schema::{
    CommitDataRequest, DataSourceDescriptor, FlushRequest, GetTraceStatsResponse, NotifyDataSourceStartedRequest,
    NotifyDataSourceStoppedRequest, TraceConfig, commit_data_request, producer_port, trace_config,
};
use esatto_service::{ChunkHeader, ClientId, Input};

use crate::world::{FakeProducer, World, buffer, chunk_payload, packet, source, text_of};

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

/// A producer that obeys its commands, most of the time.
struct Actor {
    producer: FakeProducer,
    name: u64,
    /// Instance id, target buffer and writer id of what runs.
    running: Vec<(u64, u32, u16)>,
    /// Next chunk id and packet number per writer.
    writers: HashMap<u16, (u32, u32)>,
    unacknowledged: Vec<u64>,
    next_writer: u16,
    page: u32,
}

struct Simulation {
    random: Random,
    world: World,
    actors: Vec<Actor>,
    consumers: Vec<ClientId>,
    /// Last packet number seen per consumer, producer and writer.
    seen: HashMap<(ClientId, u64, u16), u32>,
    packets_read: usize,
    names: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            world: World::with_seed(seed as u8),
            actors: Vec::new(),
            consumers: Vec::new(),
            seen: HashMap::new(),
            packets_read: 0,
            names: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=3 if self.actors.len() < 8 => self.connect_producer(),
            4..=5 if self.consumers.len() < 4 => self.connect_consumer(),
            6 if !self.actors.is_empty() => self.kill_producer(),
            7 if self.random.chance(15) => self.kill_consumer(),
            8..=12 => self.control(),
            13..=16 => self.read(),
            17..=24 => self.world.advance_ms([1, 50, 700, 6000][self.random.below(4) as usize]),
            25..=40 => self.obey(),
            _ => (0..4).for_each(|_| self.write()),
        }
    }

    fn connect_producer(&mut self) {
        self.names += 1;
        let name = self.names;
        let producer = if self.random.chance(50) {
            self.world.scraped_producer(&name.to_string())
        } else {
            self.world.producer(&name.to_string())
        };
        for source in ["a", "b"] {
            let descriptor = DataSourceDescriptor {
                name: Some(source.into()),
                will_notify_on_start: Some(self.random.chance(50)),
                will_notify_on_stop: Some(self.random.chance(50)),
                handles_incremental_state_clear: Some(true),
                no_flush: Some(self.random.chance(20)),
                ..Default::default()
            };
            self.world.register_as(&producer, descriptor);
        }
        self.actors.push(Actor {
            producer,
            name,
            running: Vec::new(),
            writers: HashMap::new(),
            unacknowledged: Vec::new(),
            next_writer: 1,
            page: 0,
        });
    }

    fn kill_producer(&mut self) {
        let index = self.random.below(self.actors.len() as u64) as usize;
        let actor = self.actors.swap_remove(index);
        self.world.feed(Input::ProducerDisconnected(actor.producer.client));
    }

    fn connect_consumer(&mut self) {
        let consumer = self.world.consumer_of(self.random.below(2) as i32);
        self.consumers.push(consumer);
    }

    fn kill_consumer(&mut self) {
        if let Some(consumer) = self.consumers.pop() {
            self.world.feed(Input::ConsumerDisconnected(consumer));
        }
    }

    fn any_consumer(&mut self) -> Option<ClientId> {
        let count = self.consumers.len() as u64;
        (count > 0).then(|| self.consumers[self.random.below(count) as usize])
    }

    fn control(&mut self) {
        let Some(consumer) = self.any_consumer() else { return };
        match self.random.below(8) {
            0..=2 => {
                self.seen.retain(|&(of, _, _), _| of != consumer);
                let policy = trace_config::buffer_config::FillPolicy(self.random.below(3) as i32);
                let small = trace_config::BufferConfig { fill_policy: Some(policy), ..buffer(8) };
                let config = TraceConfig {
                    buffers: vec![small, buffer(64)],
                    data_sources: vec![source("a"), source("b")],
                    duration_ms: self.random.chance(30).then_some(800),
                    deferred_start: Some(self.random.chance(20)),
                    flush_period_ms: self.random.chance(30).then_some(300),
                    flush_timeout_ms: Some(100),
                    data_source_stop_timeout_ms: Some(200),
                    write_into_file: Some(self.random.chance(10)),
                    incremental_state_config: Some(trace_config::IncrementalStateConfig {
                        clear_period_ms: Some(500),
                        ..Default::default()
                    }),
                    ..TraceConfig::default()
                };
                self.world.enable_with(consumer, &config, true);
            }
            3 => drop(self.world.consumer_call(consumer, Method::StartTracing, &[])),
            4 if self.random.chance(30) => drop(self.world.consumer_call(consumer, Method::DisableTracing, &[])),
            5 if self.random.chance(30) => drop(self.world.consumer_call(consumer, Method::FreeBuffers, &[])),
            6 => drop(self.world.consumer_call(consumer, Method::GetTraceStats, &[])),
            _ => {
                let request = FlushRequest { timeout_ms: Some(50), ..Default::default() }.encode();
                self.world.consumer_call(consumer, Method::Flush, &request);
            }
        }
    }

    /// A producer carries out its commands; some it forgets.
    fn obey(&mut self) {
        if self.actors.is_empty() {
            return;
        }
        let index = self.random.below(self.actors.len() as u64) as usize;
        for command in self.world.commands(&self.actors[index].producer) {
            let actor = &mut self.actors[index];
            if self.random.chance(5) {
                continue;
            }
            if let Some(start) = command.start_data_source {
                let id = start.new_instance_id.unwrap();
                let target = start.config.unwrap().target_buffer.unwrap();
                let writer = actor.next_writer;
                actor.next_writer += 1;
                actor.running.push((id, target, writer));
                let producer = actor.producer.clone();
                if self.random.chance(80) {
                    self.world.register_writer(&producer, writer.into(), target);
                }
                let request = NotifyDataSourceStartedRequest { data_source_id: Some(id), ..Default::default() };
                let method = producer_port::Method::NotifyDataSourceStarted;
                self.world.producer_call(producer.client, method, &request.encode());
            } else if let Some(stop) = command.stop_data_source {
                let id = stop.instance_id.unwrap();
                actor.running.retain(|&(running, _, _)| running != id);
                let client = actor.producer.client;
                let request = NotifyDataSourceStoppedRequest { data_source_id: Some(id), ..Default::default() };
                self.world.producer_call(client, producer_port::Method::NotifyDataSourceStopped, &request.encode());
            } else if let Some(flush) = command.flush {
                actor.unacknowledged.push(flush.request_id.unwrap());
            }
        }
        let actor = &mut self.actors[index];
        for flush in core::mem::take(&mut actor.unacknowledged) {
            let producer = actor.producer.clone();
            self.world.acknowledge_flush(&producer, flush);
        }
    }

    /// A producer writes a chunk, commits it, leaves it to be scraped, or does something forbidden.
    fn write(&mut self) {
        if self.actors.is_empty() {
            return;
        }
        let index = self.random.below(self.actors.len() as u64) as usize;
        let actor = &mut self.actors[index];
        let Some(&(_, mut target, writer)) = actor.running.first() else { return };
        let Some(memory) = self.world.memories.get(&actor.producer.client).cloned() else { return };
        let (chunk_id, number) = actor.writers.entry(writer).or_insert((0, 0));
        let count = 1 + self.random.below(3) as u32;
        let filler = " ".repeat(self.random.below(400) as usize);
        let name = actor.name;
        let packets: Vec<Vec<u8>> =
            (0..count).map(|i| packet(&format!("{name} {writer} {} {filler}", *number + i))).collect();
        let payload = chunk_payload(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let header = ChunkHeader { writer_id: writer, chunk_id: *chunk_id, count: count as u16, flags: 0 };
        *chunk_id += 1;
        *number += count;
        let page = actor.page;
        actor.page = (actor.page + 1) % 64;
        memory.put(page, header, true, &payload);
        if self.random.chance(10) {
            // Never committed: lost, or scraped.
            return;
        }
        if self.random.chance(5) {
            target = self.random.below(70_000) as u32;
        }
        let mut chunk = commit_data_request::ChunksToMove {
            page: Some(page),
            chunk: Some(0),
            target_buffer: Some(target),
            ..Default::default()
        };
        if self.random.chance(3) {
            chunk.page = Some(self.random.below(1 << 33) as u32);
        }
        let request = CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() };
        let producer = actor.producer.clone();
        self.world.commit_request(&producer, &request);
    }

    fn read(&mut self) {
        let Some(consumer) = self.any_consumer() else { return };
        for packet in self.world.read(consumer) {
            let Some(text) = text_of(&packet) else { continue };
            self.packets_read += 1;
            let loss = text.split_once('=').is_some();
            let mut words = text.split([' ', '=']);
            let name: u64 = words.next().unwrap().parse().unwrap();
            let writer: u16 = words.next().unwrap().parse().unwrap();
            let number: u32 = words.next().unwrap().parse().unwrap();
            let last = self.seen.insert((consumer, name, writer), number);
            assert!(last.is_none_or(|last| number > last), "packet {number} after {last:?}");
            let is_gap = last.is_some_and(|last| number != last + 1);
            assert!(!is_gap || loss, "packets before {number} are missing, unmarked");
        }
    }

    fn end(mut self) -> usize {
        while !self.actors.is_empty() {
            self.kill_producer();
        }
        while !self.consumers.is_empty() {
            self.kill_consumer();
        }
        self.world.advance_ms(60_000);
        assert_eq!(self.world.timers(), 0);
        assert_eq!(self.world.files.len(), self.world.closed_files.len());
        let consumer = self.world.consumer_of(0);
        self.world.enable(consumer, &TraceConfig { buffers: vec![buffer(4)], ..TraceConfig::default() });
        let call = self.world.consumer_call(consumer, Method::GetTraceStats, &[]);
        let reply = &self.world.replies[&call][0];
        let stats = GetTraceStatsResponse::decode(reply.body.as_bytes()).unwrap().trace_stats.unwrap();
        assert_eq!((stats.tracing_sessions, stats.total_buffers), (Some(1), Some(1)));
        assert_eq!((stats.producers_connected, stats.data_sources_registered), (Some(0), Some(0)));
        self.packets_read
    }
}

#[test]
fn whatever_happens_order_holds_and_nothing_is_left_behind() {
    let mut packets_read = 0;
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed);
        for _ in 0..600 {
            simulation.step();
        }
        packets_read += simulation.end();
    }
    assert!(packets_read > 1000, "the simulation does something: {packets_read} packets");
}

#[test]
fn a_seed_replays_exactly() {
    let run = || {
        let mut simulation = Simulation::new(12);
        for _ in 0..600 {
            simulation.step();
        }
        simulation.end()
    };
    assert_eq!(run(), run());
}
