//! Several machines: the reports of relays, the machines whose producers take part, and the packets
//! about them in the trace.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port, relay_port};
use std::time::Instant;

use esatto_protozero::{Fields, Owned};
use esatto_schema::sync_clock_request::{Clock, Phase};
use esatto_schema::trace_config::BuiltinDataSource;
use esatto_schema::{
    ClockSnapshotReader, CloneSessionRequest, CommitDataRequest, InitRelayRequest, InitializeConnectionRequest,
    QueryServiceStateResponse, SHARED_MACHINE_ID_FIELD, SyncClockRequest, SystemInfo, TraceConfig, TracePacketReader,
    commit_data_request,
};
use esatto_service::{CallId, ClientId, Input, MemoryKind, Peer, RelayCall};

use crate::world::{FakeProducer, World, chunk_payload, config, packet, source, text_of};

const GUEST: u32 = 1_011_363_979;

fn guest_producer(world: &mut World, machine_id: u32, machine_name: &str) -> FakeProducer {
    let client = ClientId(world.id());
    let peer = Peer { uid: 5, pid: Some(9001), machine_id };
    world.feed(Input::ProducerConnected { client, peer, memory: MemoryKind::Emulated });
    world.feed(Input::MachineNamed { client, name: machine_name.as_bytes() });
    let request = InitializeConnectionRequest {
        producer_name: Some(machine_name.into()),
        ..InitializeConnectionRequest::default()
    };
    world.producer_call(client, producer_port::method::InitializeConnection::METHOD, &request.encode());
    let commands = world.producer_call(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
    let producer = FakeProducer::at(client, commands);
    world.register(&producer, "ds");
    producer
}

/// Sends a chunk inside of a commit.
fn commit(world: &mut World, producer: &FakeProducer, target_buffer: u32, texts: &[&str]) {
    let packets: Vec<Vec<u8>> = texts.iter().map(|text| packet(text)).collect();
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let mut data = vec![0, 0, 0, 0, 1, 0, packets.len() as u8, 0];
    data.extend_from_slice(&chunk_payload(&packets));
    let chunk = commit_data_request::ChunksToMove {
        target_buffer: Some(target_buffer),
        data: Some(data),
        ..Default::default()
    };
    world.commit_request(producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
}

fn relay(world: &mut World, machine_id: u32, machine_name: &str) -> ClientId {
    let client = ClientId(world.id());
    world.feed(Input::RelayConnected { client, peer: Peer { uid: 0, pid: Some(9000), machine_id } });
    world.feed(Input::MachineNamed { client, name: machine_name.as_bytes() });
    client
}

fn relay_call(world: &mut World, client: ClientId, method: u32, request: &[u8]) -> CallId {
    let call = CallId { client, request: world.id() };
    world.feed(Input::RelayCall { call, method: RelayCall::read(method, request).unwrap() });
    call
}

fn init(world: &mut World, client: ClientId, cpus: u32) -> CallId {
    let system_info = SystemInfo { num_cpus: Some(cpus), ..SystemInfo::default() };
    let request = InitRelayRequest { system_info: Some(Box::new(system_info)), ..Default::default() };
    relay_call(world, client, relay_port::method::InitRelay::METHOD, &request.encode())
}

/// A guest whose clock is behind ours by 100 s makes a round; each way takes a millisecond.
fn round(world: &mut World, client: ClientId) {
    for phase in [Phase::PING, Phase::UPDATE] {
        let clock =
            Clock { clock_id: Some(6), timestamp: Some(world.now.boottime_ns - 100_000_000_000), ..Default::default() };
        world.advance_ms(1);
        let request = SyncClockRequest { phase: Some(phase), clocks: vec![clock], ..Default::default() };
        let call = relay_call(world, client, relay_port::method::SyncClock::METHOD, &request.encode());
        assert!(world.is_answered(call));
        world.advance_ms(1);
    }
}

/// The packets of a trace.
struct Trace(Vec<Vec<u8>>);

fn read(world: &mut World, consumer: ClientId) -> Trace {
    Trace(world.read(consumer))
}

impl Trace {
    fn packets(&self) -> impl Iterator<Item = TracePacketReader<'_>> {
        self.0.iter().map(|packet| TracePacketReader::parse(packet).unwrap())
    }

    /// Packets of other machines.
    fn remote(&self) -> Vec<TracePacketReader<'_>> {
        self.packets().filter(|packet| packet.machine_id().is_some()).collect()
    }

    fn position(&self, wanted: impl Fn(TracePacketReader<'_>) -> bool) -> Option<usize> {
        self.packets().position(wanted)
    }
}

fn everywhere(sources: &[&str]) -> TraceConfig {
    TraceConfig { trace_all_machines: Some(true), ..config(sources) }
}

fn is_set_up(world: &mut World, producer: &FakeProducer) -> bool {
    world.commands(producer).iter().any(|command| command.setup_data_source.is_some())
}

#[test]
fn only_the_host_takes_part_unless_the_config_says_otherwise() {
    for (trace_all_machines, filter, host, guest) in [
        (false, &[][..], true, false),
        (true, &[], true, true),
        (false, &["guest1"], false, true),
        (true, &["guest1"], false, true),
        (false, &["host"], true, false),
        (false, &["the host's name"], true, false),
        (false, &["host", "guest1"], true, true),
        (true, &["guest2"], false, false),
    ] {
        let mut world = World::of_machine("the host's name");
        let host_producer = world.producer("p");
        world.register(&host_producer, "ds");
        let guest_producer = guest_producer(&mut world, GUEST, "guest1");
        let consumer = world.consumer();
        let mut config = TraceConfig { trace_all_machines: Some(trace_all_machines), ..config(&[]) };
        let mut source = source("ds");
        source.machine_name_filter = filter.iter().map(|&name| name.into()).collect();
        config.data_sources.push(source);
        world.enable(consumer, &config);
        assert_eq!(is_set_up(&mut world, &host_producer), host, "{trace_all_machines} {filter:?}");
        assert_eq!(is_set_up(&mut world, &guest_producer), guest, "{trace_all_machines} {filter:?}");
    }
}

#[test]
fn no_remote_machine_gets_the_name_host() {
    let mut world = World::new();
    let impostor = guest_producer(&mut world, GUEST, "host");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    config.data_sources[0].machine_name_filter.push("host".into());
    world.enable(consumer, &config);
    assert!(!is_set_up(&mut world, &impostor));
}

#[test]
fn packets_of_two_machines_are_two_sequences() {
    let mut world = World::new();
    let guests = [guest_producer(&mut world, GUEST, "guest1"), guest_producer(&mut world, 5, "guest2")];
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    for (guest, text) in guests.iter().zip(["one", "two"]) {
        let commands = world.commands(guest);
        assert!(commands.iter().any(|command| command.setup_tracing.is_some()), "memory is announced");
        commit(&mut world, guest, 1, &[text]);
    }
    let trace = read(&mut world, consumer);
    let told = |text: &str| {
        let packet = trace.0.iter().find(|packet| text_of(packet).as_deref() == Some(text)).unwrap();
        let packet = TracePacketReader::new(packet);
        (packet.machine_id().unwrap(), packet.trusted_uid().unwrap(), packet.trusted_pid().unwrap())
    };
    assert_eq!(told("one"), (GUEST, 5, 9001));
    assert_eq!(told("two"), (5, 5, 9001));
    let contents = trace.packets().filter(|packet| packet.for_testing().is_some());
    let mut sequences: Vec<_> = contents.map(|packet| packet.trusted_packet_sequence_id().unwrap()).collect();
    sequences.dedup();
    assert_eq!(sequences.len(), 2);
}

#[test]
fn a_trace_tells_of_other_machines_and_their_clocks() {
    let mut world = World::new();
    let guest = relay(&mut world, GUEST, "guest1");
    let call = init(&mut world, guest, 3);
    assert!(world.is_answered(call));
    round(&mut world, guest);
    let producer = guest_producer(&mut world, GUEST, "guest1");
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    commit(&mut world, &producer, 1, &["content"]);

    let trace = read(&mut world, consumer);
    let infos: Vec<_> = trace.packets().filter(|packet| packet.system_info().is_some()).collect();
    assert_eq!(infos.iter().map(|packet| packet.machine_id()).collect::<Vec<_>>(), [None, Some(GUEST)]);
    let info = infos[1].system_info().unwrap();
    assert_eq!((info.num_cpus(), info.machine_name()), (Some(3), Some(&b"guest1"[..])));
    assert_eq!((infos[1].trusted_packet_sequence_id(), infos[1].trusted_uid()), (Some(1), Some(7)));

    let syncs: Vec<_> = trace.packets().filter(|packet| packet.remote_clock_sync().is_some()).collect();
    assert_eq!(syncs.len(), 1);
    let at = trace.position(|packet| packet.remote_clock_sync().is_some());
    let event = trace.position(|packet| packet.service_event().is_some_and(|event| event.tracing_started().is_some()));
    let content = trace.position(|packet| packet.for_testing().is_some());
    assert!(event.is_some() && event < at && at < content, "between the events and the buffers");
    let sync = syncs[0];
    assert_eq!(
        (sync.machine_id(), sync.trusted_uid(), sync.trusted_packet_sequence_id()),
        (Some(GUEST), Some(7), None),
        "of the machine, by the service, on no sequence"
    );
    let exchanges: Vec<_> = sync.remote_clock_sync().unwrap().synced_clocks().collect();
    assert_eq!(exchanges.len(), 2, "PING and UPDATE");
    for exchange in exchanges {
        let (client, host) = (exchange.client_clocks().unwrap(), exchange.host_clocks().unwrap());
        assert_eq!((client.clocks().count(), host.clocks().count()), (1, 6));
        let boottime = |snapshot: ClockSnapshotReader<'_>| {
            let clock = snapshot.clocks().find(|clock| clock.clock_id() == Some(6));
            clock.and_then(|clock| clock.timestamp()).unwrap()
        };
        assert_eq!(boottime(host) - boottime(client), 100_001_000_000, "a millisecond on the way");
    }
    assert_eq!(read(&mut world, consumer).remote().len(), 0, "once is enough");
}

#[test]
fn the_first_read_after_a_machine_is_known_describes_it() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    assert_eq!(read(&mut world, consumer).remote().len(), 0);
    let guest = relay(&mut world, GUEST, "guest1");
    init(&mut world, guest, 1);
    let kinds = |trace: Trace| -> Vec<bool> {
        trace.remote().iter().map(|packet| packet.remote_clock_sync().is_some()).collect()
    };
    assert_eq!(kinds(read(&mut world, consumer)), [false], "SystemInfo");
    let clocks = SyncClockRequest { phase: Some(Phase::PING), ..Default::default() }.encode();
    relay_call(&mut world, guest, relay_port::method::SyncClock::METHOD, &clocks);
    assert_eq!(kinds(read(&mut world, consumer)), [false; 0], "half a round is of no use");
    round(&mut world, guest);
    assert_eq!(kinds(read(&mut world, consumer)), [true], "its clocks");
}

#[test]
fn the_facts_about_a_machine_outlive_its_relay() {
    let mut world = World::new();
    let guest = relay(&mut world, GUEST, "guest1");
    init(&mut world, guest, 1);
    round(&mut world, guest);
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    world.feed(Input::RelayDisconnected(guest));
    assert_eq!(read(&mut world, consumer).remote().len(), 2);
}

#[test]
fn a_clone_tells_of_other_machines_again() {
    let mut world = World::new();
    let guest = relay(&mut world, GUEST, "guest1");
    init(&mut world, guest, 1);
    round(&mut world, guest);
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    assert_eq!(read(&mut world, consumer).remote().len(), 2);
    let cloning = world.consumer();
    let request = CloneSessionRequest { session_id: Some(1), ..CloneSessionRequest::default() };
    let call = world.consumer_call(cloning, consumer_port::method::CloneSession::METHOD, &request.encode());
    assert!(world.is_answered(call));
    assert_eq!(read(&mut world, cloning).remote().len(), 2);
}

#[test]
fn two_relays_of_one_machine_are_one_machine() {
    let mut world = World::new();
    for cpus in [1, 2] {
        let relay = relay(&mut world, GUEST, "guest1");
        init(&mut world, relay, cpus);
        round(&mut world, relay);
    }
    let line = "relays \"guest1\" and \"guest1\" have one machine id, 0x";
    assert!(world.warnings.len() == 1 && world.warnings[0].starts_with(line), "{:?}", world.warnings);
    assert!(world.warnings[0].ends_with("start each relay with another ESATTO_MACHINE_ID_HINT"));
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    let trace = read(&mut world, consumer);
    assert_eq!(shared_ids(&trace), [u64::from(GUEST)]);
    let remote = trace.remote();
    assert_eq!(remote.len(), 2);
    assert_eq!(remote[0].system_info().unwrap().num_cpus(), Some(2), "the newest");
    // Readings of two relays that follow each other closely would be taken for a round.
    assert_eq!(remote[1].remote_clock_sync().unwrap().synced_clocks().count(), 2);
}

/// Returns the ids that two machines have, as the trace says.
fn shared_ids(trace: &Trace) -> Vec<u64> {
    let events = trace.packets().filter_map(|packet| packet.service_event());
    let ids = events.flat_map(|event| Fields::new(event.as_bytes()).find(|field| field.id == SHARED_MACHINE_ID_FIELD));
    ids.map(|field| field.as_u64()).collect()
}

#[test]
fn a_relay_that_connects_again_is_no_second_machine() {
    let mut world = World::new();
    let old = relay(&mut world, GUEST, "guest1");
    init(&mut world, old, 1);
    // The service has not noticed the end of the old connection yet.
    let new = relay(&mut world, GUEST, "guest1");
    init(&mut world, new, 1);
    world.feed(Input::RelayDisconnected(old));
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    assert_eq!(shared_ids(&read(&mut world, consumer)), [0; 0]);
}

/// Looking for the other relays of a machine is no work that the service counts, so this measures
/// time. A search through all relays would take a thousand times as long.
#[test]
fn a_call_of_a_relay_costs_the_same_among_many_relays() {
    let time_of_calls = |others: u32| {
        let mut world = World::new();
        for id in 0..others {
            relay(&mut world, 100_000 + id, "other");
        }
        let relays = [1, 2].map(|_| relay(&mut world, GUEST, "guest"));
        let calls = (0..7).map(|_| {
            let begin = Instant::now();
            for _ in 0..20 {
                round(&mut world, relays[0]);
                init(&mut world, relays[1], 1);
            }
            begin.elapsed()
        });
        calls.min().unwrap()
    };
    let (alone, crowded) = (time_of_calls(0), time_of_calls(30_000));
    assert!(crowded < alone * 10, "{alone:?} alone, {crowded:?} among 30000 relays");
}

#[test]
fn the_switches_for_system_info_and_clocks_are_for_all_machines() {
    let mut world = World::new();
    let guest = relay(&mut world, GUEST, "guest1");
    init(&mut world, guest, 1);
    round(&mut world, guest);
    let consumer = world.consumer();
    let builtin = BuiltinDataSource {
        disable_system_info: Some(true),
        disable_clock_snapshotting: Some(true),
        ..Default::default()
    };
    world.enable(consumer, &TraceConfig { builtin_data_sources: Some(builtin), ..everywhere(&["ds"]) });
    assert_eq!(read(&mut world, consumer).remote().len(), 0);
}

#[test]
fn a_relay_without_a_machine_is_answered_and_its_facts_are_dropped() {
    let mut world = World::new();
    let guest = relay(&mut world, 0, "guest1");
    let call = init(&mut world, guest, 3);
    assert!(world.is_answered(call));
    round(&mut world, guest);
    assert_eq!(world.warnings.len(), 1);
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    let trace = read(&mut world, consumer);
    assert_eq!(trace.packets().filter(|packet| packet.system_info().is_some()).count(), 1);
    assert_eq!(trace.position(|packet| packet.remote_clock_sync().is_some()), None);
}

#[test]
fn malformed_system_info_is_not_put_into_traces() {
    let mut world = World::new();
    let guest = relay(&mut world, GUEST, "guest1");
    // system_info { utsname: 5 bytes, of which there are 1 }
    let call = relay_call(&mut world, guest, relay_port::method::InitRelay::METHOD, &[0x0a, 3, 0x0a, 5, 0]);
    assert!(world.is_answered(call));
    assert_eq!(world.warnings.len(), 1);
    let consumer = world.consumer();
    world.enable(consumer, &everywhere(&["ds"]));
    assert_eq!(read(&mut world, consumer).remote().len(), 0);
}

#[test]
fn the_service_state_names_remote_machines() {
    let mut world = World::new();
    world.producer("local");
    guest_producer(&mut world, GUEST, "guest1");
    let consumer = world.consumer();
    let call = world.consumer_call(consumer, consumer_port::method::QueryServiceState::METHOD, &[]);
    let body = world.replies[&call][0].body.as_bytes().to_vec();
    let state = QueryServiceStateResponse::decode(&body).unwrap().service_state.unwrap();
    let machines: Vec<_> = state
        .producers
        .iter()
        .map(|producer| (producer.machine_id, producer.machine_name.as_ref().map(|name| name.to_string())))
        .collect();
    assert_eq!(machines, [(None, None), (Some(GUEST), Some("guest1".to_owned()))]);
}
