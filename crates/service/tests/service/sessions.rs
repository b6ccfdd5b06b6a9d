//! Sessions start, run and end.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_ports::producer_port;
use esatto_protozero::{Fields, Owned};
use esatto_schema::tracing_service_event::DataSourcesReader;
use esatto_schema::{
    AttachRequest, DataSourceDescriptor, DetachRequest, EnableTracingRequest, InitializeConnectionRequest,
    NotifyDataSourceStartedRequest, NotifyDataSourceStoppedRequest, ObservableEvents, ObserveEventsRequest,
    ObserveEventsResponse, QueryServiceStateRequest, QueryServiceStateResponse, SLOW_STOPPING_DATA_SOURCES_FIELD,
    TraceConfig, TracePacketReader, observable_events, trace_config,
};
use esatto_service::{Attachment, CallId, ClientId, Input, MemoryKind};

use crate::world::{World, config, packet};

fn notifying(name: &str) -> DataSourceDescriptor {
    DataSourceDescriptor {
        name: Some(name.into()),
        will_notify_on_start: Some(true),
        will_notify_on_stop: Some(true),
        ..Default::default()
    }
}

fn events(world: &World, call: CallId) -> Vec<ObservableEvents> {
    let replies = world.replies.get(&call).into_iter().flatten();
    replies
        .filter(|reply| reply.has_more)
        .map(|reply| ObserveEventsResponse::decode(reply.body.as_bytes()).unwrap().events.unwrap())
        .collect()
}

fn observe(world: &mut World, consumer: ClientId, types: &[i32]) -> CallId {
    let events_to_observe = types.iter().map(|&event| observable_events::Type(event)).collect();
    let request = ObserveEventsRequest { events_to_observe, ..Default::default() };
    world.consumer_call(consumer, method::ObserveEvents::METHOD, &request.encode())
}

#[test]
fn from_enable_to_the_last_packet() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let call = world.enable(consumer, &config(&["ds"]));

    let commands = world.commands(&producer);
    let setup_tracing = commands[0].setup_tracing.as_ref().unwrap();
    assert_eq!(setup_tracing.shared_buffer_page_size_kb, Some(4));
    let setup = commands[1].setup_data_source.as_ref().unwrap();
    let start = commands[2].start_data_source.as_ref().unwrap();
    assert_eq!(commands.len(), 3);
    assert_eq!((setup.new_instance_id, start.new_instance_id), (Some(1), Some(1)));
    assert_eq!(setup.config, start.config);
    let ds = setup.config.as_ref().unwrap();
    assert_eq!((ds.target_buffer, ds.tracing_session_id, ds.stop_timeout_ms), (Some(1), Some(1), Some(5000)));

    world.commit(&mut producer, 1, 1, 0, &[&packet("one"), &packet("two")]);
    assert_eq!(world.ended(call), None);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(call).as_deref(), Some(""));
    assert_eq!(world.commands(&producer)[0].stop_data_source.as_ref().unwrap().instance_id, Some(1));
    assert_eq!(world.read_texts(consumer), ["one", "two"]);
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert!(world.read(consumer).is_empty());
    assert_eq!(world.timers(), 0);
}

#[test]
fn shared_memory_is_made_once_and_announced_with_its_descriptor() {
    let mut world = World::new();
    let request = InitializeConnectionRequest {
        producer_name: Some("p".into()),
        shared_memory_size_hint_bytes: Some(2 << 20),
        shared_memory_page_size_hint_bytes: Some(64 << 10),
        ..Default::default()
    };
    let producer = world.producer_with(&request, MemoryKind::Shared);
    world.register(&producer, "ds");
    assert!(world.created.is_empty());
    for _ in 0..2 {
        let consumer = world.consumer();
        world.enable(consumer, &config(&["ds"]));
    }
    assert_eq!(world.created, [(producer.client, 2 << 20, 32 << 10)]);
    let replies = &world.replies[&producer.commands];
    let attached: Vec<_> = replies.iter().map(|reply| reply.attachment == Attachment::SharedBuffer).collect();
    assert_eq!(attached, [true, false, false, false, false]);
}

#[test]
fn sizes_in_the_config_come_before_hints() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let wish = trace_config::ProducerConfig {
        producer_name: Some("p".into()),
        shm_size_kb: Some(512),
        page_size_kb: Some(16),
        ..Default::default()
    };
    world.enable(consumer, &TraceConfig { producers: vec![wish], ..config(&["ds"]) });
    assert_eq!(world.created, [(producer.client, 512 << 10, 16 << 10)]);
}

#[test]
fn a_producer_without_memory_is_disconnected() {
    let mut world = World::new();
    world.memory_is_available = false;
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    assert_eq!(world.closed_clients, [producer.client]);
}

#[test]
fn memory_brought_along_is_adopted_only_in_acceptable_sizes() {
    use esatto_service::ProducerCall;
    for (size, page, adopted) in [(16 << 10, 4 << 10, true), (10 << 10, 4 << 10, false), (16 << 10, 0, false)] {
        let mut world = World::new();
        let client = ClientId(world.id());
        let peer = esatto_service::Peer { uid: 1, pid: None, machine_id: 0 };
        world.feed(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared });
        let request = InitializeConnectionRequest {
            shared_memory_page_size_hint_bytes: Some(page),
            producer_provided_shmem: Some(true),
            ..Default::default()
        }
        .encode();
        let call = CallId { client, request: 0 };
        let request = esatto_schema::InitializeConnectionRequestReader::new(&request);
        let method = ProducerCall::InitializeConnection(request);
        let memory = crate::world::FakeMemory::new(size, page as usize);
        world.feed(Input::ProducerCall { call, method, offered: Some(Box::new(memory)) });
        let reply = world.replies[&call][0].body.as_bytes().to_vec();
        let response = esatto_schema::InitializeConnectionResponse::decode(&reply).unwrap();
        assert_eq!(response.using_shmem_provided_by_producer, Some(adopted));
        let commands = world.producer_call(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
        assert_eq!(world.is_answered(commands), adopted, "an empty setup_tracing");
    }
}

#[test]
fn a_deferred_start_waits() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&["ds"]) });
    assert_eq!(world.commands(&producer).len(), 2);
    assert_eq!(world.timers(), 0);
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    assert!(world.commands(&producer)[0].start_data_source.is_some());
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    assert_eq!(world.read_texts(consumer), ["x"]);
}

#[test]
fn the_duration_ends_with_a_flush() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let call = world.enable(consumer, &TraceConfig { duration_ms: Some(300), ..config(&["ds"]) });
    world.commands(&producer);
    world.advance_ms(299);
    assert!(world.commands(&producer).is_empty());
    world.advance_ms(1);
    let flush = world.commands(&producer).remove(0).flush.unwrap();
    assert_eq!((&flush.data_source_ids[..], flush.flags), (&[1][..], Some(0x12)));
    world.commit(&mut producer, 1, 1, 0, &[&packet("late")]);
    assert_eq!(world.ended(call), None);
    world.acknowledge_flush(&producer, flush.request_id.unwrap());
    assert_eq!(world.ended(call).as_deref(), Some(""));
    assert_eq!(world.read_texts(consumer), ["late"]);
}

#[test]
fn acknowledgements_of_start_and_stop_are_awaited() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register_as(&producer, notifying("ds"));
    let consumer = world.consumer();
    let observer = observe(&mut world, consumer, &[1, 2]);
    let call = world.enable(consumer, &config(&["ds"]));
    assert!(events(&world, observer).is_empty());

    let request = NotifyDataSourceStartedRequest { data_source_id: Some(1), ..Default::default() }.encode();
    world.producer_call(producer.client, producer_port::method::NotifyDataSourceStarted::METHOD, &request);
    let seen = events(&world, observer);
    assert_eq!(seen.len(), 1, "events of one task come in one message");
    assert_eq!(seen[0].all_data_sources_started, Some(true));
    let change = &seen[0].instance_state_changes[0];
    assert_eq!(change.state, Some(observable_events::DataSourceInstanceState(2)));
    assert_eq!((change.producer_name.clone(), change.data_source_name.clone()), (Some("p".into()), Some("ds".into())));

    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(call), None);
    let request = NotifyDataSourceStoppedRequest { data_source_id: Some(1), ..Default::default() }.encode();
    world.producer_call(producer.client, producer_port::method::NotifyDataSourceStopped::METHOD, &request);
    assert_eq!(world.ended(call).as_deref(), Some(""));
}

#[test]
fn a_session_that_stops_already_ends_in_the_time_of_a_service_that_ends() {
    for (session_ms, ends_ms) in [(5000, 1250), (100, 100)] {
        let mut world = World::new();
        let producer = world.producer("mute");
        world.register_as(&producer, notifying("ds"));
        let consumer = world.consumer();
        let config = TraceConfig { data_source_stop_timeout_ms: Some(session_ms), ..config(&["ds"]) };
        let call = world.enable(consumer, &config);
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        world.feed(Input::StopSessions { timeout_ms: 1250 });
        world.advance_ms(ends_ms - 1);
        assert_eq!(world.ended(call), None);
        world.advance_ms(1);
        assert_eq!(world.ended(call).as_deref(), Some(""));
        assert_eq!((world.timers(), world.warnings.len()), (0, 1));
    }
}

#[test]
fn a_producer_that_does_not_acknowledge_its_stop_is_named_and_not_waited_for_longer() {
    let mut world = World::new();
    let producer = world.producer("mute\n");
    world.register_as(&producer, notifying("ds"));
    let consumer = world.consumer();
    let call = world.enable(consumer, &TraceConfig { data_source_stop_timeout_ms: Some(100), ..config(&["ds"]) });
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    world.advance_ms(99);
    assert_eq!(world.ended(call), None);
    assert!(world.warnings.is_empty(), "{:?}", world.warnings);
    world.advance_ms(1);
    assert_eq!(world.ended(call).as_deref(), Some(""));
    assert_eq!(world.timers(), 0);
    let line =
        r#"session 1: its stop was not acknowledged within 100 ms by producer "mute\n" (uid 1000, pid 42): "ds""#;
    assert_eq!(world.warnings, [line]);
    let packets = world.read(consumer);
    let events = packets.iter().filter_map(|packet| TracePacketReader::new(packet).service_event());
    let slow: Vec<Vec<u8>> = events
        .flat_map(|event| Fields::new(event.as_bytes()).filter(|field| field.id == SLOW_STOPPING_DATA_SOURCES_FIELD))
        .map(|field| field.as_bytes().to_vec())
        .collect();
    let slow: Vec<_> = slow.iter().flat_map(|slow| DataSourcesReader::new(slow).data_source()).collect();
    assert_eq!(slow.len(), 1);
    assert_eq!((slow[0].producer_name(), slow[0].data_source_name()), (Some(&b"mute\n"[..]), Some(&b"ds"[..])));
}

#[test]
fn late_observers_get_the_state_of_instances() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let observer = observe(&mut world, consumer, &[1, 2]);
    let seen = events(&world, observer);
    assert_eq!(seen[0].all_data_sources_started, Some(true));
    assert_eq!(seen[0].instance_state_changes.len(), 1);

    let second = observe(&mut world, consumer, &[]);
    assert!(!world.replies[&observer].back().unwrap().has_more, "the stream before is closed");
    assert!(!world.replies[&second].back().unwrap().has_more, "an empty list closes itself");
}

#[test]
fn a_session_can_be_detached_and_attached() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let key = |key: &str| DetachRequest { key: Some(key.into()), ..Default::default() }.encode();
    let empty = world.consumer_call(consumer, method::Detach::METHOD, &key(""));
    assert_eq!(world.rejected, [empty]);
    let detached = world.consumer_call(consumer, method::Detach::METHOD, &key("k"));
    assert!(world.is_answered(detached));
    world.feed(Input::ConsumerDisconnected(consumer));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);

    let request = AttachRequest { key: Some("k".into()), ..Default::default() }.encode();
    let stranger = world.consumer_of(5);
    let refused = world.consumer_call(stranger, method::Attach::METHOD, &request);
    assert_eq!(world.rejected.last(), Some(&refused));
    let consumer = world.consumer();
    let attached = world.consumer_call(consumer, method::Attach::METHOD, &request);
    assert!(world.is_answered(attached));
    let request = EnableTracingRequest { attach_notification_only: Some(true), ..Default::default() }.encode();
    let end = world.consumer_call(consumer, method::EnableTracing::METHOD, &request);
    assert_eq!(world.ended(end), None);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert_eq!(world.read_texts(consumer), ["x"]);
}

#[test]
fn the_state_of_the_service_can_be_asked_for() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { unique_session_name: Some("n".into()), ..config(&["ds"]) });
    let mut ask = |client, sessions_only| {
        let request = QueryServiceStateRequest { sessions_only: Some(sessions_only), ..Default::default() }.encode();
        let call = world.consumer_call(client, method::QueryServiceState::METHOD, &request);
        let reply = world.replies[&call][0].body.as_bytes().to_vec();
        QueryServiceStateResponse::decode(&reply).unwrap().service_state.unwrap()
    };
    let state = ask(consumer, false);
    assert_eq!((state.producers.len(), state.data_sources.len(), state.num_sessions), (1, 1, Some(1)));
    let session = &state.tracing_sessions[0];
    assert_eq!((session.state.clone(), session.is_started), (Some("STARTED".into()), Some(true)));
    assert_eq!((&session.buffer_size_kb[..], session.num_data_sources), (&[64][..], Some(1)));
    let state = ask(consumer, true);
    assert_eq!((state.producers.len(), state.data_sources.len()), (0, 0));
}

#[test]
fn queries_and_requests_without_a_session_are_answered() {
    let mut world = World::new();
    let consumer = world.consumer();
    for method in [
        method::DisableTracing::METHOD,
        method::StartTracing::METHOD,
        method::FreeBuffers::METHOD,
        method::ChangeTraceConfig::METHOD,
        method::ReadBuffers::METHOD,
        method::QueryCapabilities::METHOD,
        method::SaveTraceForBugreport::METHOD,
        method::CloneSession::METHOD,
    ] {
        let call = world.consumer_call(consumer, method, &[]);
        assert!(world.is_answered(call), "{method:?}");
        assert!(!world.replies[&call].back().unwrap().has_more);
    }
    for method in [method::GetTraceStats::METHOD, method::Attach::METHOD, method::Detach::METHOD] {
        let call = world.consumer_call(consumer, method, &[]);
        assert_eq!(world.rejected.last(), Some(&call), "{method:?}");
    }
}

#[test]
fn calls_before_initialize_connection_are_rejected() {
    let mut world = World::new();
    let client = ClientId(world.id());
    let peer = esatto_service::Peer { uid: 1, pid: None, machine_id: 0 };
    world.feed(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared });
    for (method, _) in (1..).zip(producer_port::SERVICE.methods).skip(1) {
        let call = world.producer_call(client, method, &[]);
        assert_eq!(world.rejected.last(), Some(&call), "{method:?}");
    }
    let first = world.producer_call(client, producer_port::method::InitializeConnection::METHOD, &[]);
    assert!(world.is_answered(first));
    let second = world.producer_call(client, producer_port::method::InitializeConnection::METHOD, &[]);
    assert_eq!(world.rejected.last(), Some(&second));
    let commit = world.producer_call(client, producer_port::method::CommitData::METHOD, &[]);
    assert_eq!(world.rejected.last(), Some(&commit), "there is no memory yet");
}

#[test]
fn a_session_can_watch_other_sessions() {
    use esatto_schema::TracePacketReader;
    let mut world = World::new();
    let first = world.consumer();
    world.enable(first, &TraceConfig { unique_session_name: Some("first".into()), ..config(&[]) });
    let watcher = world.consumer();
    let builtin = trace_config::BuiltinDataSource {
        enable_concurrent_session_events: Some(true),
        ..trace_config::BuiltinDataSource::default()
    };
    world.enable(watcher, &TraceConfig { builtin_data_sources: Some(builtin), ..config(&[]) });
    let second = world.consumer();
    world.enable(second, &config(&[]));
    world.consumer_call(second, method::DisableTracing::METHOD, &[]);
    let packets = world.read(watcher);
    let seen: Vec<_> = packets
        .iter()
        .filter_map(|packet| TracePacketReader::new(packet).concurrent_session_event())
        .map(|event| (event.session_id().unwrap(), event.state().unwrap().0))
        .collect();
    assert_eq!(seen, [(1, 3), (3, 2), (3, 3), (3, 1)]);
    assert!(world.read(first).iter().all(|packet| TracePacketReader::new(packet).concurrent_session_event().is_none()));
}
