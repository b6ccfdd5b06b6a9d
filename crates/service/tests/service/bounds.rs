//! Costs of inputs in hostile orders. Costs are work that the service counts, never time.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use esatto_protozero::{Fields, Owned};
use esatto_schema::trace_config::trigger_config::{Trigger, TriggerMode};
use esatto_schema::trace_config::{SessionSemaphore, TriggerConfig};
use esatto_schema::{
    ActivateTriggersRequest, CommitDataRequest, DataSourceDescriptor, FlushRequest, InitializeConnectionRequest,
    NotifyDataSourceStoppedRequest, RegisterDataSourceRequest, TRIGGERS_LOST_FIELD, TraceConfig,
    UnregisterDataSourceRequest, UnregisterTraceWriterRequest, commit_data_request,
};
use esatto_service::{CallId, ChunkHeader, ClientId, Input, MemoryKind, Peer};

use crate::clones;
use crate::world::{FakeProducer, World, buffer, chunk_payload, config, source};

/// Work that an input may cause for each of its bytes, and once.
const PER_BYTE: u64 = 8;
const PER_INPUT: u64 = 200;

/// Sums up what calls cost and how long they are.
#[derive(Default)]
struct Bill {
    work: u64,
    bytes: u64,
    calls: u64,
}

impl Bill {
    fn producer(&mut self, world: &mut World, producer: &FakeProducer, method: u32, request: &[u8]) {
        let before = world.service.work();
        world.producer_call(producer.client, method, request);
        self.add(world, before, request);
    }

    fn consumer(&mut self, world: &mut World, client: ClientId, method: u32, request: &[u8]) -> CallId {
        let before = world.service.work();
        let call = world.consumer_call(client, method, request);
        self.add(world, before, request);
        call
    }

    fn add(&mut self, world: &World, before: u64, request: &[u8]) {
        self.work += world.service.work() - before;
        self.bytes += request.len() as u64;
        self.calls += 1;
    }

    #[track_caller]
    fn assert_paid(&self) {
        let Self { work, bytes, calls } = *self;
        assert!(work > 0 && work <= PER_BYTE * bytes + PER_INPUT * calls, "{work} for {bytes} bytes in {calls} calls");
    }
}

pub(crate) fn register_request(name: &str, id: u64) -> Vec<u8> {
    let descriptor = DataSourceDescriptor {
        name: Some(name.into()),
        id: Some(id),
        will_notify_on_stop: Some(true),
        ..Default::default()
    };
    RegisterDataSourceRequest { data_source_descriptor: Some(Box::new(descriptor)), ..Default::default() }.encode()
}

/// As many sessions as there can be, each of which wants these data sources.
fn all_sessions(world: &mut World, names: &[&str]) -> Vec<ClientId> {
    let enable = |uid: i32| {
        let consumer = world.consumer_of(uid);
        let call = world.enable(consumer, &config(names));
        assert_eq!(world.ended(call), None);
        consumer
    };
    (0..15).map(|number| 2000 + number / 5).map(enable).collect()
}

pub(crate) fn producer_of(world: &mut World, uid: i32, machine_id: u32, name: &str) -> FakeProducer {
    let client = ClientId(world.id());
    let memory = MemoryKind::Shared;
    world.feed(Input::ProducerConnected { client, peer: Peer { uid, pid: None, machine_id }, memory });
    let hello = InitializeConnectionRequest { producer_name: Some(name.into()), ..Default::default() }.encode();
    world.producer_call(client, producer_port::method::InitializeConnection::METHOD, &hello);
    let commands = world.producer_call(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
    FakeProducer::at(client, commands)
}

#[test]
fn the_work_of_registrations_follows_their_length_in_any_order() {
    let mut world = World::new();
    let mut bill = Bill::default();
    let sessions = all_sessions(&mut world, &["wanted"]);
    let producers: Vec<FakeProducer> = (0..20).map(|_| world.producer("p")).collect();
    // No session wants them.
    for id in (1..=1000).rev() {
        for (number, producer) in producers.iter().enumerate() {
            let name = if id % 2 == 0 { "same".to_owned() } else { format!("{number}.{id}") };
            bill.producer(
                &mut world,
                producer,
                producer_port::method::RegisterDataSource::METHOD,
                &register_request(&name, id),
            );
        }
    }
    bill.assert_paid();
    let held = world.service.holdings().registrations;
    assert!(held > 15_000, "{held}");
    let mut bill = Bill::default();
    for id in 1..=1000 {
        for (number, producer) in producers.iter().enumerate() {
            let name = if id % 2 == 0 { "same".to_owned() } else { format!("{number}.{id}") };
            let request = UnregisterDataSourceRequest { data_source_name: Some(name.into()), ..Default::default() };
            let method = producer_port::method::UnregisterDataSource::METHOD;
            bill.producer(&mut world, producer, method, &request.encode());
        }
    }
    bill.assert_paid();
    assert_eq!(world.service.holdings().registrations, 0);
    world.service.assert_consistent();
    drop(sessions);
}

#[test]
fn the_work_of_stops_follows_their_number_in_any_order() {
    let mut world = World::new();
    let sessions = all_sessions(&mut world, &["wanted"]);
    let producers: Vec<FakeProducer> = (0..12).map(|_| world.producer("p")).collect();
    let mut bill = Bill::default();
    for producer in &producers {
        for id in 1..=300 {
            let request = register_request("wanted", id);
            bill.producer(&mut world, producer, producer_port::method::RegisterDataSource::METHOD, &request);
        }
    }
    // Each becomes an instance of each session. The service sends each to its producer twice.
    assert!(bill.work <= 15 * 30 * bill.calls, "{} for {} calls", bill.work, bill.calls);
    let mut started: Vec<(usize, u64)> = Vec::new();
    for (number, producer) in producers.iter().enumerate() {
        let starts = world.commands(producer).into_iter().filter_map(|command| command.start_data_source);
        started.extend(starts.map(|start| (number, start.new_instance_id.unwrap())));
    }
    assert!(started.len() > 15 * 1000, "{}", started.len());
    for &consumer in &sessions {
        world.consumer_call(consumer, consumer_port::method::DisableTracing::METHOD, &[]);
    }
    started.sort_by_key(|&(_, instance)| core::cmp::Reverse(instance));
    let mut bill = Bill::default();
    for (number, instance) in started {
        let request = NotifyDataSourceStoppedRequest { data_source_id: Some(instance), ..Default::default() }.encode();
        bill.producer(&mut world, &producers[number], producer_port::method::NotifyDataSourceStopped::METHOD, &request);
    }
    // The last ones end the sessions, which are looked through once.
    assert!(bill.work <= 60 * bill.calls, "{} for {} calls", bill.work, bill.calls);
    world.service.assert_consistent();

    let before = world.service.work();
    for producer in &producers {
        world.feed(Input::ProducerDisconnected(producer.client));
    }
    let work = world.service.work() - before;
    assert!(work <= 10 * 15 * 12 * 300, "{work} for the end of 12 producers");
    world.service.assert_consistent();
}

#[test]
fn acknowledged_flushes_are_visited_once() {
    let mut world = World::new();
    let sessions = all_sessions(&mut world, &["ds"]);
    let silent = world.producer("silent");
    world.register(&silent, "ds");
    let producer = world.producer("p");
    world.register(&producer, "ds");
    for &consumer in &sessions {
        for _ in 0..1000 {
            let request = FlushRequest { timeout_ms: Some(1_000_000), ..Default::default() }.encode();
            world.consumer_call(consumer, consumer_port::method::Flush::METHOD, &request);
        }
    }
    let mut bill = Bill::default();
    for up_to in (0..=15_000).step_by(3).chain([u64::MAX; 5000]) {
        let request = CommitDataRequest { flush_request_id: Some(up_to), ..Default::default() }.encode();
        bill.producer(&mut world, &producer, producer_port::method::CommitData::METHOD, &request);
    }
    bill.assert_paid();
    world.service.assert_consistent();
    // The silent one answers the last flush first; all end, each with a timer.
    let before = world.service.work();
    world.acknowledge_flush(&silent, u64::MAX);
    let work = world.service.work() - before;
    assert!(work <= 15_000 * 20, "{work}");
    world.service.assert_consistent();
}

#[cfg(feature = "regex")]
#[test]
fn many_expressions_for_many_names_cost_little() {
    let mut world = World::new();
    let consumer = world.consumer();
    let honest = world.consumer_of(2000);
    for length in 100..120 {
        let producer = world.producer(&"a".repeat(length));
        world.register(&producer, "ds");
    }
    let with_patterns = |patterns: Vec<&str>| {
        let mut config = config(&["ds"]);
        config.data_sources[0].producer_name_regex_filter = patterns.into_iter().map(Into::into).collect();
        config
    };
    let before = world.service.work();
    let call = world.enable(consumer, &with_patterns(vec![r"(a*)*b\1"; 500]));
    let work = world.service.work() - before;
    assert_eq!(world.ended(call), None);
    assert!(work < (1 << 19), "{work} units of work");
    assert!(world.warnings.len() < 10, "{} lines in the log", world.warnings.len());
    // One session's hard expressions do not slow down others.
    world.enable(honest, &with_patterns(vec!["(?!b)a+"]));
    let late = world.producer(&"a".repeat(99));
    let before = world.service.work();
    world.register(&late, "ds");
    let work = world.service.work() - before;
    assert!(work < (1 << 19), "{work} units of work");
    let call = world.consumer_call(honest, consumer_port::method::QueryServiceState::METHOD, &[]);
    let reply = esatto_schema::QueryServiceStateResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
    let state = reply.service_state.unwrap();
    assert_eq!(state.tracing_sessions[0].num_data_sources, Some(21), "all are wanted");
}

/// A session with one producer that is scraped, and in whose memory are this many chunks of 4000
/// bytes.
fn scraped(chunks: u32) -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { buffers: vec![buffer(1024)], ..config(&["ds"]) });
    let producer = world.scraped_producer("p");
    world.register(&producer, "ds");
    world.register_writer(&producer, 1, 1);
    let payload = chunk_payload(&[&[1; 4000]]);
    for page in 0..chunks {
        let header = ChunkHeader { writer_id: 1, chunk_id: page, count: 1, flags: 0 };
        world.memories[&producer.client].put(page, header, true, &payload);
    }
    (world, producer, consumer)
}

#[test]
fn flushes_that_end_together_scrape_once() {
    const CHUNKS: u32 = 50;
    let (mut world, producer, consumer) = scraped(CHUNKS);
    let mut calls = Vec::new();
    for _ in 0..1000 {
        let request = FlushRequest { timeout_ms: Some(1_000_000), ..Default::default() }.encode();
        calls.push(world.consumer_call(consumer, consumer_port::method::Flush::METHOD, &request));
    }
    let before = world.service.work();
    world.acknowledge_flush(&producer, u64::MAX);
    let work = world.service.work() - before;
    // At least the copied bytes, and at most a few times that, beside the cost of each flush.
    let once = u64::from(CHUNKS) * 4000 / 64;
    assert!((once..10 * once + 20_000).contains(&work), "{work} units of work");
    assert!(calls.iter().all(|call| world.replies.contains_key(call)), "all are answered");
}

#[test]
fn the_work_of_a_clone_follows_the_copied_bytes() {
    let (mut world, producer, consumer) = scraped(100);
    let request = FlushRequest::default().encode();
    world.consumer_call(consumer, consumer_port::method::Flush::METHOD, &request);
    world.acknowledge_flush(&producer, u64::MAX);
    world.feed(Input::ProducerDisconnected(producer.client));
    let cloner = world.consumer();
    let before = world.service.work();
    let call = clones::ask(&mut world, cloner, &clones::by_id(1));
    assert_eq!(clones::answer(&world, call).and_then(|answer| answer.success), Some(true));
    let work = world.service.work() - before;
    assert!(work >= 100 * 4000 / 64, "{work} units of work for 400 kB");
}

#[test]
fn the_work_of_writers_follows_their_number_in_any_order() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let mut bill = Bill::default();
    for writer in (1..=20_000_u32).rev() {
        let request = esatto_schema::RegisterTraceWriterRequest {
            trace_writer_id: Some(writer),
            target_buffer: Some(writer % 3 + 1),
            ..Default::default()
        }
        .encode();
        bill.producer(&mut world, &producer, producer_port::method::RegisterTraceWriter::METHOD, &request);
        if writer % 2 == 0 {
            let request = UnregisterTraceWriterRequest { trace_writer_id: Some(writer), ..Default::default() }.encode();
            bill.producer(&mut world, &producer, producer_port::method::UnregisterTraceWriter::METHOD, &request);
        }
    }
    bill.assert_paid();
    // The end of a session is paid for by the writers that it had: each is looked at once.
    let mut bill = Bill::default();
    for _ in 0..20 {
        bill.consumer(&mut world, consumer, consumer_port::method::FreeBuffers::METHOD, &[]);
        let before = world.service.work();
        world.enable(consumer, &config(&["ds"]));
        assert!(world.service.work() - before < 100);
    }
    assert!(bill.work <= 12_000, "{}", bill.work);
}

#[test]
fn the_work_of_a_commit_follows_its_length() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let mut bill = Bill::default();
    let moved = (0..5000).rev().map(|page| commit_data_request::ChunksToMove {
        page: Some(page),
        target_buffer: Some(page % 7),
        ..Default::default()
    });
    let patch = |offset| commit_data_request::chunk_to_patch::Patch {
        offset: Some(offset),
        data: Some(vec![1; 4]),
        ..Default::default()
    };
    let patched = (0..500).rev().map(|id| commit_data_request::ChunkToPatch {
        target_buffer: Some(1),
        writer_id: Some(id),
        chunk_id: Some(id),
        patches: (0..20).map(patch).collect(),
        ..Default::default()
    });
    let request =
        CommitDataRequest { chunks_to_move: moved.collect(), chunks_to_patch: patched.collect(), ..Default::default() };
    bill.producer(&mut world, &producer, producer_port::method::CommitData::METHOD, &request.encode());
    bill.assert_paid();
}

pub(crate) fn trigger(name: &str, delay_ms: u32) -> Trigger {
    Trigger { name: Some(name.into()), stop_delay_ms: Some(delay_ms), ..Default::default() }
}

pub(crate) fn with_triggers(mode: TriggerMode, triggers: Vec<Trigger>) -> TraceConfig {
    let triggers =
        TriggerConfig { trigger_mode: Some(mode), trigger_timeout_ms: Some(1_000_000), triggers, ..Default::default() };
    TraceConfig { trigger_config: Some(triggers), ..config(&["ds"]) }
}

#[test]
fn the_work_of_triggers_follows_their_length_and_losses_are_counted() {
    let mut world = World::new();
    let mut consumers = Vec::new();
    for number in 0..15 {
        let consumer = world.consumer_of(2000 + number / 5);
        let triggers = (0..1000).map(|number| trigger(&format!("t{number}"), 1)).collect();
        let call = world.enable(consumer, &with_triggers(TriggerMode::STOP_TRACING, triggers));
        assert_eq!(world.ended(call), None);
        consumers.push(consumer);
    }
    let producer = world.producer("p");
    let mut bill = Bill::default();
    for round in 0..20 {
        let names = (0..20_000).map(|number| format!("t{}", (number * 7 + round) % 2000).into());
        let request = ActivateTriggersRequest { trigger_names: names.collect(), ..Default::default() }.encode();
        bill.producer(&mut world, &producer, producer_port::method::ActivateTriggers::METHOD, &request);
    }
    bill.assert_paid();
    assert!(world.warnings.iter().any(|line| line.contains("too many triggers")), "{:?}", world.warnings.last());
    let stats = trace_stats(&mut world, consumers[0]);
    let lost = Fields::new(&stats).find(|field| field.id == TRIGGERS_LOST_FIELD).map(|field| field.as_u64());
    assert_eq!(lost, Some(20 * 1024 - 1024), "1024 are kept until they are read");
}

/// The encoded TraceStats.
pub(crate) fn trace_stats(world: &mut World, consumer: ClientId) -> Vec<u8> {
    let call = world.consumer_call(consumer, consumer_port::method::GetTraceStats::METHOD, &[]);
    Fields::new(world.replies[&call][0].body.as_bytes()).next().unwrap().as_bytes().to_vec()
}

#[test]
fn the_work_of_a_config_follows_its_length() {
    let mut world = World::new();
    let semaphores = |from: u64| -> Vec<SessionSemaphore> {
        let semaphore = |number| SessionSemaphore {
            name: Some(format!("semaphore {number}").into()),
            max_other_session_count: Some(20),
            ..Default::default()
        };
        (from..from + 1000).rev().map(semaphore).collect()
    };
    for number in 0..15 {
        let config = TraceConfig {
            session_semaphores: semaphores(number),
            data_sources: (0..1000).map(|number| source(&format!("ds {}", 1000 - number))).collect(),
            ..with_triggers(TriggerMode::STOP_TRACING, (0..1000).rev().map(|n| trigger(&format!("t{n}"), 0)).collect())
        };
        let consumer = world.consumer_of(2000 + number as i32 / 5);
        let before = world.service.work();
        let call = world.enable(consumer, &config);
        assert_eq!(world.ended(call), None);
        let (work, bytes) = (world.service.work() - before, config.encode().len() as u64);
        assert!(work <= PER_BYTE * bytes, "{work} for {bytes} bytes");
    }
    let many = TraceConfig { session_semaphores: [semaphores(0), semaphores(1000)].concat(), ..config(&[]) };
    let consumer = world.consumer_of(1);
    let call = world.enable(consumer, &many);
    assert_eq!(world.ended(call).unwrap(), "session_semaphores has 2000 entries, at most 1024 are possible");
}
