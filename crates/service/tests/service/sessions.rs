//! Sessions start, run and end.

use esatto_protozero::Owned;
use esatto_schema::consumer_port::Method;
use esatto_schema::{
    AttachRequest, ChangeTraceConfigRequest, DataSourceDescriptor, DetachRequest, EnableTracingRequest, FlushRequest,
    InitializeConnectionRequest, NotifyDataSourceStartedRequest, NotifyDataSourceStoppedRequest, ObservableEvents,
    ObserveEventsRequest, ObserveEventsResponse, QueryServiceStateRequest, QueryServiceStateResponse, TraceConfig,
    UnregisterDataSourceRequest, observable_events, producer_port, trace_config,
};
use esatto_service::{Attachment, CallId, ClientId, Input, MemoryKind};

use crate::world::{SERVICE_UID, World, buffer, config, packet, source};

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
    world.consumer_call(consumer, Method::ObserveEvents, &request.encode())
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
    world.consumer_call(consumer, Method::DisableTracing, &[]);
    assert_eq!(world.ended(call).as_deref(), Some(""));
    assert_eq!(world.commands(&producer)[0].stop_data_source.as_ref().unwrap().instance_id, Some(1));
    assert_eq!(world.read_texts(consumer), ["one", "two"]);
    world.consumer_call(consumer, Method::FreeBuffers, &[]);
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
        let method = ProducerCall::InitializeConnection {
            request: esatto_schema::InitializeConnectionRequestReader::new(&request),
            offered: Some(Box::new(crate::world::FakeMemory::new(size, page as usize))),
        };
        world.feed(Input::ProducerCall { call, method });
        let reply = world.replies[&call][0].body.as_bytes().to_vec();
        let response = esatto_schema::InitializeConnectionResponse::decode(&reply).unwrap();
        assert_eq!(response.using_shmem_provided_by_producer, Some(adopted));
        let commands = world.producer_call(client, producer_port::Method::GetAsyncCommand, &[]);
        assert_eq!(world.is_answered(commands), adopted, "an empty setup_tracing");
    }
}

#[test]
fn unknown_fields_of_a_data_source_config_are_forwarded() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    let ds = config.data_sources[0].config.as_mut().unwrap();
    ds.unknown_fields = vec![0xc2, 0xb8, 0x02, 2, b'h', b'i'];
    ds.trace_duration_ms = Some(99);
    ds.legacy_config = Some("text".into());
    world.enable(consumer, &config);
    let setup = world.commands(&producer).remove(1).setup_data_source.unwrap().config.unwrap();
    assert_eq!(setup.unknown_fields, [0xc2, 0xb8, 0x02, 2, b'h', b'i']);
    assert_eq!(setup.trace_duration_ms, Some(0));
    assert_eq!(setup.legacy_config, Some("text".into()));
}

#[test]
fn data_sources_registered_later_join_and_unregistered_ones_leave() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds", "ds", "other"]));
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let commands = world.commands(&producer);
    assert_eq!(commands.len(), 5, "memory, and setup and start for each of two entries");
    assert!(commands[3].setup_data_source.is_some() && commands[4].start_data_source.is_some());
    let request = UnregisterDataSourceRequest { data_source_name: Some("ds".into()), ..Default::default() };
    world.producer_call(producer.client, producer_port::Method::UnregisterDataSource, &request.encode());
    let commands = world.commands(&producer);
    assert_eq!(commands.len(), 2);
    assert!(commands.iter().all(|command| command.stop_data_source.is_some()));
}

#[test]
fn producer_name_filters_select() {
    let mut world = World::new();
    let first = world.producer("first");
    let second = world.producer("second");
    world.register(&first, "ds");
    world.register(&second, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    config.data_sources[0].producer_name_filter = vec!["second".into()];
    world.enable(consumer, &config);
    assert!(world.commands(&first).is_empty());
    assert_eq!(world.commands(&second).len(), 3);
    config.data_sources[0].producer_name_filter.push("first".into());
    let request = ChangeTraceConfigRequest { trace_config: Some(Box::new(config)), ..Default::default() };
    world.consumer_call(consumer, Method::ChangeTraceConfig, &request.encode());
    assert_eq!(world.commands(&first).len(), 3);
    assert!(world.commands(&second).is_empty());
}

#[test]
fn machine_name_filters_know_the_host() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    for (filter, expected) in [("host", true), ("elsewhere", false)] {
        let consumer = world.consumer();
        let mut config = config(&["ds"]);
        config.data_sources[0].machine_name_filter = vec![filter.into()];
        world.enable(consumer, &config);
        assert_eq!(!world.commands(&producer).is_empty(), expected, "{filter}");
    }
}

#[test]
fn the_second_registration_of_an_id_is_ignored() {
    let mut world = World::new();
    let producer = world.producer("p");
    let descriptor = DataSourceDescriptor { name: Some("a".into()), id: Some(5), ..Default::default() };
    world.register_as(&producer, descriptor.clone());
    world.register_as(&producer, DataSourceDescriptor { name: Some("b".into()), ..descriptor });
    world.register_as(&producer, DataSourceDescriptor::default());
    let consumer = world.consumer();
    world.enable(consumer, &config(&["a", "b", ""]));
    assert_eq!(world.commands(&producer).len(), 3);
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
    world.consumer_call(consumer, Method::StartTracing, &[]);
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
    world.producer_call(producer.client, producer_port::Method::NotifyDataSourceStarted, &request);
    let seen = events(&world, observer);
    assert_eq!(seen.len(), 1, "events of one task come in one message");
    assert_eq!(seen[0].all_data_sources_started, Some(true));
    let change = &seen[0].instance_state_changes[0];
    assert_eq!(change.state, Some(observable_events::DataSourceInstanceState(2)));
    assert_eq!((change.producer_name.clone(), change.data_source_name.clone()), (Some("p".into()), Some("ds".into())));

    world.consumer_call(consumer, Method::DisableTracing, &[]);
    assert_eq!(world.ended(call), None);
    let request = NotifyDataSourceStoppedRequest { data_source_id: Some(1), ..Default::default() }.encode();
    world.producer_call(producer.client, producer_port::Method::NotifyDataSourceStopped, &request);
    assert_eq!(world.ended(call).as_deref(), Some(""));
}

#[test]
fn a_producer_that_does_not_acknowledge_its_stop_is_not_waited_for_longer() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register_as(&producer, notifying("ds"));
    let consumer = world.consumer();
    let call = world.enable(consumer, &TraceConfig { data_source_stop_timeout_ms: Some(100), ..config(&["ds"]) });
    world.consumer_call(consumer, Method::DisableTracing, &[]);
    world.advance_ms(99);
    assert_eq!(world.ended(call), None);
    world.advance_ms(1);
    assert_eq!(world.ended(call).as_deref(), Some(""));
    assert_eq!(world.timers(), 0);
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
fn flushes_end_after_all_answers_or_the_time_out() {
    let mut world = World::new();
    let first = world.producer("a");
    let second = world.producer("b");
    world.register(&first, "ds");
    world.register(&second, "ds");
    let unasked = DataSourceDescriptor { name: Some("quiet".into()), no_flush: Some(true), ..Default::default() };
    world.register_as(&second, unasked);
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds", "quiet"]));
    let request = FlushRequest { timeout_ms: Some(100), flags: Some(0x24), ..Default::default() }.encode();
    world.commands(&second);

    let flush = world.consumer_call(consumer, Method::Flush, &request);
    let asked = world.commands(&second).remove(0).flush.unwrap();
    assert_eq!((asked.data_source_ids.len(), asked.flags), (1, Some(0x24)));
    let later = world.consumer_call(consumer, Method::Flush, &request);
    let id = asked.request_id.unwrap();
    world.acknowledge_flush(&first, id);
    assert!(!world.is_answered(flush));
    world.acknowledge_flush(&second, id + 1);
    assert!(world.is_answered(flush) && !world.is_answered(later));
    world.acknowledge_flush(&first, id + 1);
    assert!(world.is_answered(later), "one acknowledgement is for all flushes before it");

    let late = world.consumer_call(consumer, Method::Flush, &request);
    world.advance_ms(100);
    assert_eq!(world.rejected, [late]);
}

#[test]
fn flushes_that_need_no_answer_and_flushes_that_get_none() {
    let mut world = World::new();
    let consumer = world.consumer();
    let flush = world.consumer_call(consumer, Method::Flush, &[]);
    assert_eq!(world.rejected, [flush], "nobody waits for ever");
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&[]) });
    let early = world.consumer_call(consumer, Method::Flush, &[]);
    assert_eq!(world.rejected, [flush, early]);
    world.consumer_call(consumer, Method::StartTracing, &[]);
    let flush = world.consumer_call(consumer, Method::Flush, &[]);
    assert!(world.is_answered(flush));
}

#[test]
fn periodic_flushes_and_clears_of_incremental_state() {
    let mut world = World::new();
    let producer = world.producer("p");
    let descriptor = DataSourceDescriptor {
        name: Some("ds".into()),
        handles_incremental_state_clear: Some(true),
        ..Default::default()
    };
    world.register_as(&producer, descriptor);
    let consumer = world.consumer();
    let clear = trace_config::IncrementalStateConfig { clear_period_ms: Some(300), ..Default::default() };
    let config = TraceConfig { flush_period_ms: Some(200), incremental_state_config: Some(clear), ..config(&["ds"]) };
    world.enable(consumer, &config);
    world.commands(&producer);
    world.advance_ms(600);
    let commands = world.commands(&producer);
    let flushes = commands.iter().filter(|command| command.flush.is_some()).count();
    let clears = commands.iter().filter(|command| command.clear_incremental_state.is_some()).count();
    assert_eq!((flushes, clears), (3, 2));
}

#[test]
fn a_config_is_refused_with_a_reason_and_another_may_follow() {
    let mut world = World::new();
    let consumer = world.consumer();
    let no_buffers = TraceConfig { data_sources: vec![source("ds")], ..Default::default() };
    let refused = world.enable(consumer, &no_buffers);
    assert!(world.ended(refused).unwrap().contains("buffers"));
    let absurd = TraceConfig { buffers: vec![buffer(u32::MAX)], ..Default::default() };
    let refused = world.enable(consumer, &absurd);
    assert!(world.ended(refused).unwrap().contains("4294967295"));
    let accepted = world.enable(consumer, &config(&["ds"]));
    assert_eq!(world.ended(accepted), None);
}

#[test]
fn a_second_session_of_the_same_consumer_is_refused() {
    let mut world = World::new();
    let consumer = world.consumer();
    let first = world.enable(consumer, &config(&[]));
    let second = world.enable(consumer, &config(&[]));
    assert_eq!(world.rejected, [first]);
    assert!(world.ended(second).unwrap().contains("session"));
}

#[test]
fn sessions_are_limited_per_user_and_in_total() {
    let mut world = World::new();
    // A user with one session, who wants another one when there are 15.
    for uid in [3, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2] {
        let consumer = world.consumer_of(uid);
        let call = world.enable(consumer, &config(&[]));
        assert_eq!(world.ended(call), None);
    }
    let consumer = world.consumer_of(0);
    let call = world.enable(consumer, &config(&[]));
    assert!(world.ended(call).unwrap().contains("uid 0"));
    let consumer = world.consumer_of(3);
    let call = world.enable(consumer, &config(&[]));
    assert!(world.ended(call).unwrap().contains("15"));
}

#[test]
fn names_semaphores_and_exclusive_sessions() {
    let mut world = World::new();
    let named = TraceConfig { unique_session_name: Some("n".into()), ..config(&[]) };
    let semaphore = |max| trace_config::SessionSemaphore {
        name: Some("s".into()),
        max_other_session_count: max,
        ..Default::default()
    };
    let holding = |max| TraceConfig { session_semaphores: vec![semaphore(max)], ..config(&[]) };
    let exclusive = |prio| TraceConfig { exclusive_prio: Some(prio), ..config(&[]) };
    let mut enable = |config: &TraceConfig| {
        let consumer = world.consumer_of(0);
        let call = world.enable(consumer, config);
        (world.ended(call), call)
    };
    let (ok, first) = enable(&named);
    assert_eq!(ok, None);
    assert!(enable(&named).0.is_some());
    assert_eq!(enable(&holding(Some(1))).0, None);
    assert_eq!(enable(&holding(Some(1))).0, None);
    assert!(enable(&holding(Some(9))).0.is_some(), "the smallest limit counts");
    assert_eq!(enable(&exclusive(3)).0, None);
    assert!(enable(&exclusive(3)).0.is_some());
    assert!(enable(&config(&[])).0.is_some());
    assert_eq!(enable(&exclusive(4)).0, None);
    assert!(world.ended(first).unwrap().contains("exclusive_prio 3"), "those before were ended");
}

#[test]
fn lockdown_keeps_other_users_producers_out() {
    let mut world = World::new();
    let before = world.producer("before");
    world.register(&before, "ds");
    let consumer = world.consumer_of(0);
    let lockdown_mode = Some(trace_config::LockdownModeOperation::LOCKDOWN_SET);
    world.enable(consumer, &TraceConfig { lockdown_mode, ..config(&["ds"]) });
    assert!(world.commands(&before).is_empty());
    world.producer("after");
    assert_eq!(world.rejected.len(), 2, "InitializeConnection, and GetAsyncCommand without it");
}

#[test]
fn a_user_cannot_lock_out_producers_of_others() {
    use trace_config::LockdownModeOperation;
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let mut enable = |uid: i32, mode: LockdownModeOperation| {
        let consumer = world.consumer_of(uid);
        let call = world.enable(consumer, &TraceConfig { lockdown_mode: Some(mode), ..config(&["ds"]) });
        (world.ended(call), world.commands(&producer).len())
    };
    let (refused, _) = enable(5, LockdownModeOperation::LOCKDOWN_SET);
    assert!(refused.unwrap().contains("lockdown_mode is for root and the service's own user (uid 7), not for uid 5"));
    // Memory, set-up and start, then set-up and start.
    assert_eq!(enable(5, LockdownModeOperation::LOCKDOWN_CLEAR), (None, 3), "there is nothing to clear");
    assert_eq!(enable(SERVICE_UID, LockdownModeOperation::LOCKDOWN_SET), (None, 0));
    let (refused, _) = enable(5, LockdownModeOperation::LOCKDOWN_CLEAR);
    assert!(refused.unwrap().contains("not for uid 5"), "what root has set stays");
    assert_eq!(enable(0, LockdownModeOperation::LOCKDOWN_CLEAR), (None, 2));
}

#[test]
fn an_exclusive_session_of_a_user_ends_only_sessions_of_this_user() {
    let exclusive = |prio| TraceConfig { exclusive_prio: Some(prio), ..config(&[]) };
    let mut world = World::new();
    let enable = |world: &mut World, uid: i32, config: &TraceConfig| {
        let consumer = world.consumer_of(uid);
        world.enable(consumer, config)
    };
    let of_root = enable(&mut world, 0, &config(&[]));
    let of_bob = enable(&mut world, 5, &config(&[]));
    let of_alice = enable(&mut world, 4, &config(&[]));
    let named = TraceConfig { unique_session_name: Some("n".into()), ..config(&[]) };
    let name_of_bob = enable(&mut world, 5, &named);
    let call = enable(&mut world, 4, &TraceConfig { exclusive_prio: Some(9), ..named });
    assert!(world.ended(call).unwrap().contains("unique_session_name"), "what is not ended stands in the way");
    let alone = enable(&mut world, 4, &exclusive(9));
    assert_eq!(world.ended(alone), None);
    assert!(world.ended(of_alice).unwrap().contains("exclusive_prio 9"));
    for untouched in [of_root, of_bob, name_of_bob] {
        assert_eq!(world.ended(untouched), None);
    }
    // It keeps out further ones of this user, and of nobody else.
    for (uid, prio, is_refused) in [(4, 0, true), (4, 9, true), (5, 0, false), (0, 0, false), (SERVICE_UID, 0, false)] {
        let call = enable(&mut world, uid, &exclusive(prio));
        assert_eq!(world.ended(call).is_some(), is_refused, "uid {uid}");
    }
    // Root's is above all, whatever its priority, and no user's is above it.
    let of_root = enable(&mut world, 0, &exclusive(1));
    assert_eq!(world.ended(of_root), None);
    assert!(world.ended(alone).unwrap().contains("exclusive_prio 1"));
    assert!(world.ended(of_bob).is_some());
    let call = enable(&mut world, 4, &exclusive(u32::MAX));
    assert!(world.ended(call).unwrap().contains("of root or the service's own user exists, which uid 4 cannot end"));
    assert_eq!(world.ended(of_root), None);
    let stronger = enable(&mut world, SERVICE_UID, &exclusive(2));
    assert_eq!(world.ended(stronger), None);
    assert!(world.ended(of_root).unwrap().contains("exclusive_prio 2"));
}

#[test]
fn a_session_can_be_detached_and_attached() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let key = |key: &str| DetachRequest { key: Some(key.into()), ..Default::default() }.encode();
    let empty = world.consumer_call(consumer, Method::Detach, &key(""));
    assert_eq!(world.rejected, [empty]);
    let detached = world.consumer_call(consumer, Method::Detach, &key("k"));
    assert!(world.is_answered(detached));
    world.feed(Input::ConsumerDisconnected(consumer));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);

    let request = AttachRequest { key: Some("k".into()), ..Default::default() }.encode();
    let stranger = world.consumer_of(5);
    let refused = world.consumer_call(stranger, Method::Attach, &request);
    assert_eq!(world.rejected.last(), Some(&refused));
    let consumer = world.consumer();
    let attached = world.consumer_call(consumer, Method::Attach, &request);
    assert!(world.is_answered(attached));
    let request = EnableTracingRequest { attach_notification_only: Some(true), ..Default::default() }.encode();
    let end = world.consumer_call(consumer, Method::EnableTracing, &request);
    assert_eq!(world.ended(end), None);
    world.consumer_call(consumer, Method::DisableTracing, &[]);
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
        let call = world.consumer_call(client, Method::QueryServiceState, &request);
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
        Method::DisableTracing,
        Method::StartTracing,
        Method::FreeBuffers,
        Method::ChangeTraceConfig,
        Method::ReadBuffers,
        Method::QueryCapabilities,
        Method::SaveTraceForBugreport,
        Method::CloneSession,
    ] {
        let call = world.consumer_call(consumer, method, &[]);
        assert!(world.is_answered(call), "{method:?}");
        assert!(!world.replies[&call].back().unwrap().has_more);
    }
    for method in [Method::GetTraceStats, Method::Attach, Method::Detach] {
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
    for method in producer_port::Method::ALL.iter().skip(1) {
        let call = world.producer_call(client, *method, &[]);
        assert_eq!(world.rejected.last(), Some(&call), "{method:?}");
    }
    let first = world.producer_call(client, producer_port::Method::InitializeConnection, &[]);
    assert!(world.is_answered(first));
    let second = world.producer_call(client, producer_port::Method::InitializeConnection, &[]);
    assert_eq!(world.rejected.last(), Some(&second));
    let commit = world.producer_call(client, producer_port::Method::CommitData, &[]);
    assert_eq!(world.rejected.last(), Some(&commit), "there is no memory yet");
}

#[test]
fn a_session_can_watch_the_others() {
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
    world.consumer_call(second, Method::DisableTracing, &[]);
    let packets = world.read(watcher);
    let seen: Vec<_> = packets
        .iter()
        .filter_map(|packet| TracePacketReader::new(packet).concurrent_session_event())
        .map(|event| (event.session_id().unwrap(), event.state().unwrap().0))
        .collect();
    assert_eq!(seen, [(1, 3), (3, 2), (3, 3), (3, 1)]);
    assert!(world.read(first).iter().all(|packet| TracePacketReader::new(packet).concurrent_session_event().is_none()));
}

#[test]
fn regular_expressions_select_producers_or_are_refused() {
    let mut world = World::new();
    let chosen = world.producer("com.example.app");
    let other = world.producer("org.example.app");
    world.register(&chosen, "ds");
    world.register(&other, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    config.data_sources[0].producer_name_regex_filter = vec!["com\\..*".into()];
    let call = world.enable(consumer, &config);
    if cfg!(feature = "regex") {
        assert_eq!(world.ended(call), None);
        assert_eq!(world.commands(&chosen).len(), 3);
        assert!(world.commands(&other).is_empty());
    } else {
        assert!(world.ended(call).unwrap().contains("regex"));
    }
}
