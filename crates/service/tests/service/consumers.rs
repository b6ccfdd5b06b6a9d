//! Every call of a consumer is answered, and sessions without a consumer come to an end.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_ports::producer_port;
use esatto_protozero::{Fields, Owned};
use esatto_schema::trace_config::{BuiltinDataSource, TriggerConfig, trigger_config};
use esatto_schema::tracing_service_event::DataSources;
use esatto_schema::{
    ActivateTriggersRequest, AttachRequest, AttachResponse, DataSourceDescriptor, DetachRequest, EnableTracingRequest,
    FlushRequest, NotifyDataSourceStartedRequest, ObserveEventsRequest, ObserveEventsResponse,
    QueryServiceStateResponse, TraceConfig, TracePacketReader, observable_events,
};
use esatto_service::{CallId, ClientId, FileId, Input};

use crate::world::{FakeProducer, World, config, packet};

pub(crate) fn detach(world: &mut World, consumer: ClientId, key: &str) -> CallId {
    let request = DetachRequest { key: Some(key.into()), ..Default::default() };
    world.consumer_call(consumer, method::Detach::METHOD, &request.encode())
}

pub(crate) fn attach(world: &mut World, consumer: ClientId, key: &str) -> CallId {
    let request = AttachRequest { key: Some(key.into()), ..Default::default() };
    world.consumer_call(consumer, method::Attach::METHOD, &request.encode())
}

pub(crate) fn wait_for_end(world: &mut World, consumer: ClientId) -> CallId {
    let request = EnableTracingRequest { attach_notification_only: Some(true), ..Default::default() };
    world.consumer_call(consumer, method::EnableTracing::METHOD, &request.encode())
}

fn observe(world: &mut World, consumer: ClientId, types: &[i32]) -> CallId {
    let events_to_observe = types.iter().map(|&event| observable_events::Type(event)).collect();
    let request = ObserveEventsRequest { events_to_observe, ..Default::default() };
    world.consumer_call(consumer, method::ObserveEvents::METHOD, &request.encode())
}

/// How often it was told that all data sources are started.
fn told_of_start(world: &World, call: CallId) -> usize {
    let replies = world.replies.get(&call).into_iter().flatten();
    replies
        .filter_map(|reply| ObserveEventsResponse::decode(reply.body.as_bytes()).unwrap().events)
        .filter(|events| events.all_data_sources_started == Some(true))
        .count()
}

fn sessions(world: &mut World) -> Vec<esatto_schema::tracing_service_state::TracingSession> {
    let root = world.consumer_of(0);
    let call = world.consumer_call(root, method::QueryServiceState::METHOD, &[]);
    let response = QueryServiceStateResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
    response.service_state.unwrap().tracing_sessions
}

fn events(packets: &[Vec<u8>], is_it: impl Fn(&esatto_schema::TracingServiceEventReader<'_>) -> bool) -> usize {
    let found = |packet: &&Vec<u8>| TracePacketReader::new(packet).service_event().is_some_and(|event| is_it(&event));
    packets.iter().filter(found).count()
}

/// A producer whose data source "ds" tells when it has started.
fn starting(world: &mut World) -> FakeProducer {
    let producer = world.producer("p");
    let descriptor =
        DataSourceDescriptor { name: Some("ds".into()), will_notify_on_start: Some(true), ..Default::default() };
    world.register_as(&producer, descriptor);
    producer
}

fn started(world: &mut World, producer: &FakeProducer, instance: u64) {
    let request = NotifyDataSourceStartedRequest { data_source_id: Some(instance), ..Default::default() };
    world.producer_call(producer.client, producer_port::method::NotifyDataSourceStarted::METHOD, &request.encode());
}

#[test]
fn a_start_without_a_consumer_is_in_the_trace_and_reported_on_attach() {
    let mut world = World::new();
    let producer = starting(&mut world);
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    detach(&mut world, consumer, "k");
    started(&mut world, &producer, 1);
    let observed = observe(&mut world, consumer, &[2]);
    assert_eq!(told_of_start(&world, observed), 0);
    attach(&mut world, consumer, "k");
    assert_eq!(told_of_start(&world, observed), 1);
    let packets = world.read(consumer);
    assert_eq!(events(&packets, |event| event.all_data_sources_started() == Some(true)), 1);
    detach(&mut world, consumer, "k");
    attach(&mut world, consumer, "k");
    assert_eq!(events(&world.read(consumer), |event| event.all_data_sources_started().is_some()), 0, "once");
}

#[test]
fn slow_starters_are_also_named_without_a_consumer() {
    let mut world = World::new();
    starting(&mut world);
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    detach(&mut world, consumer, "k");
    world.advance_ms(20_000);
    attach(&mut world, consumer, "k");
    let packets = world.read(consumer);
    assert_eq!(events(&packets, |event| event.slow_starting_data_sources().is_some()), 1);
}

#[test]
fn a_vanished_data_source_does_not_report_a_start() {
    let mut world = World::new();
    let producer = starting(&mut world);
    let consumer = world.consumer();
    let observed = observe(&mut world, consumer, &[2]);
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&["ds"]) });
    world.feed(Input::ProducerDisconnected(producer.client));
    assert_eq!(told_of_start(&world, observed), 0);
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    assert_eq!(told_of_start(&world, observed), 1, "without data sources all are started");
}

#[test]
fn a_late_observer_gets_the_start() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&[]));
    let observed = observe(&mut world, consumer, &[1, 2, 4]);
    assert_eq!(told_of_start(&world, observed), 1);
    let again = observe(&mut world, consumer, &[2]);
    assert_eq!((told_of_start(&world, observed), told_of_start(&world, again)), (1, 1));
    let end_of_first = world.replies[&observed].back().unwrap();
    assert!(!end_of_first.has_more && end_of_first.body.as_bytes().is_empty());
}

#[test]
fn attach_replies_with_the_config_and_needs_the_right_key_and_user() {
    let mut world = World::new();
    let consumer = world.consumer();
    let attached_config = TraceConfig { unique_session_name: Some("mine".into()), ..config(&[]) };
    world.enable(consumer, &attached_config);
    let other = world.consumer();
    let stranger = world.consumer_of(5);
    for (client, key) in [(other, ""), (other, "k"), (stranger, "k")] {
        let call = attach(&mut world, client, key);
        assert_eq!(world.rejected.last(), Some(&call), "nothing is detached");
    }
    let nothing = detach(&mut world, other, "k");
    assert_eq!(world.rejected.last(), Some(&nothing));
    detach(&mut world, consumer, "k");
    let gone = detach(&mut world, consumer, "k");
    assert_eq!(world.rejected.last(), Some(&gone), "it has no session any more");
    world.enable(consumer, &config(&[]));
    let taken = detach(&mut world, consumer, "k");
    assert_eq!(world.rejected.last(), Some(&taken), "a key is for one session of a user");
    let busy = attach(&mut world, consumer, "k");
    assert_eq!(world.rejected.last(), Some(&busy), "it has a session");
    for (client, key) in [(other, ""), (stranger, "k")] {
        let call = attach(&mut world, client, key);
        assert_eq!(world.rejected.last(), Some(&call));
    }
    let call = attach(&mut world, other, "k");
    let response = AttachResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
    assert_eq!(response.trace_config.as_deref(), Some(&attached_config));
    // A key is free again after a consumer attached.
    let detached = detach(&mut world, consumer, "k");
    assert!(world.is_answered(detached));
}

#[test]
fn root_attaches_the_session_of_another_user() {
    let mut world = World::new();
    let [user, other, root] = [1000, 1001, 0].map(|uid| world.consumer_of(uid));
    for consumer in [user, other] {
        world.enable(consumer, &config(&[]));
    }
    detach(&mut world, user, "k");
    let refused = attach(&mut world, other, "k");
    assert_eq!(world.rejected.last(), Some(&refused));
    // With the same key of two users, the key names none.
    detach(&mut world, other, "k");
    let ambiguous = attach(&mut world, root, "k");
    assert_eq!(world.rejected.last(), Some(&ambiguous));
    let again = attach(&mut world, other, "k");
    assert!(world.is_answered(again));
    let taken = attach(&mut world, root, "k");
    assert!(world.is_answered(taken) && world.rejected.last() != Some(&taken));
}

#[test]
fn a_call_that_waits_for_a_past_end_is_answered() {
    let mut world = World::new();
    let consumer = world.consumer();
    let call = wait_for_end(&mut world, consumer);
    assert!(world.ended(call).unwrap().contains("no session"));
    world.enable(consumer, &config(&[]));
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let call = wait_for_end(&mut world, consumer);
    assert_eq!(world.ended(call).as_deref(), Some(""));
}

/// A detached session that streams into file 1, which is full at 600 bytes.
fn detached() -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let streaming = TraceConfig {
        write_into_file: Some(true),
        file_write_period_ms: Some(1000),
        max_file_size_bytes: Some(4000),
        ..config(&["ds"])
    };
    world.enable_with(consumer, &streaming, true);
    detach(&mut world, consumer, "k");
    world.feed(Input::ConsumerDisconnected(consumer));
    let later = world.consumer();
    (world, producer, later)
}

#[test]
fn a_detached_session_whose_file_is_full_does_not_stay() {
    let (mut world, mut producer, later) = detached();
    world.commit(&mut producer, 1, 1, 0, &[&packet(&"x".repeat(3900))]);
    world.advance_ms(1000);
    assert_eq!(world.closed_files, [FileId(1)]);
    assert!(sessions(&mut world).is_empty());
    assert_eq!(world.timers(), 0);
    let call = attach(&mut world, later, "k");
    assert_eq!(world.rejected, [call]);
}

#[test]
fn a_detached_session_whose_file_cannot_be_written_waits_to_tell_why() {
    let (mut world, _, later) = detached();
    world.file_error = Some("no space".to_owned());
    world.advance_ms(1000);
    assert_eq!(world.closed_files, [FileId(1)]);
    let call = attach(&mut world, later, "k");
    assert!(world.is_answered(call));
    let end = wait_for_end(&mut world, later);
    assert!(world.ended(end).unwrap().contains("no space"));
}

#[test]
fn a_detached_session_that_is_never_triggered_does_not_stay() {
    let mut world = World::new();
    let consumer = world.consumer();
    let trigger_config = TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode::START_TRACING),
        trigger_timeout_ms: Some(1000),
        ..Default::default()
    };
    world.enable(consumer, &TraceConfig { trigger_config: Some(trigger_config), ..config(&[]) });
    detach(&mut world, consumer, "k");
    world.advance_ms(1000);
    assert!(sessions(&mut world).is_empty());
}

#[test]
fn a_session_keeps_its_start_after_the_first_read() {
    let mut world = World::new();
    let consumer = world.consumer();
    let started_at = world.now.realtime_ns as i64;
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&[]) });
    assert_eq!(sessions(&mut world)[0].start_realtime_ns, None);
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    world.read(consumer);
    assert_eq!(sessions(&mut world)[0].start_realtime_ns, Some(started_at));
}

#[test]
fn triggers_are_in_the_trace_without_the_config() {
    let mut world = World::new();
    let producer = world.producer("p");
    let consumer = world.consumer();
    let trigger = trigger_config::Trigger { name: Some("go".into()), ..Default::default() };
    let trigger_config = TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode::START_TRACING),
        triggers: vec![trigger],
        trigger_timeout_ms: Some(1000),
        ..Default::default()
    };
    let builtin = BuiltinDataSource { disable_trace_config: Some(true), ..Default::default() };
    let config =
        TraceConfig { trigger_config: Some(trigger_config), builtin_data_sources: Some(builtin), ..config(&[]) };
    world.enable(consumer, &config);
    let request = ActivateTriggersRequest { trigger_names: vec!["go".into()], ..Default::default() };
    world.producer_call(producer.client, producer_port::method::ActivateTriggers::METHOD, &request.encode());
    let packets = world.read(consumer);
    let count = |is_it: fn(&TracePacketReader<'_>) -> bool| {
        packets.iter().filter(|packet| is_it(&TracePacketReader::new(packet))).count()
    };
    assert_eq!((count(|p| p.trigger().is_some()), count(|p| p.trace_config().is_some())), (1, 0));
}

#[test]
fn too_many_flushes_are_refused() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let request = FlushRequest::default().encode();
    for _ in 0..1001 {
        world.consumer_call(consumer, method::Flush::METHOD, &request);
    }
    assert!(world.rejected.is_empty());
    let refused = world.consumer_call(consumer, method::Flush::METHOD, &request);
    assert_eq!(world.rejected, [refused]);
    world.acknowledge_flush(&producer, u64::MAX);
    let packets = world.read(consumer);
    assert_eq!(events(&packets, |event| event.flush_started().is_some()), 64, "only so many are told");
    assert_eq!(events(&packets, |event| event.all_data_sources_flushed().is_some()), 64);
}

#[test]
fn a_call_that_waits_for_a_detached_session_is_not_answered_for_another_session() {
    let mut world = World::new();
    let consumer = world.consumer();
    let left = world.enable(consumer, &config(&[]));
    detach(&mut world, consumer, "left");
    let other = world.consumer();
    world.enable(other, &config(&[]));
    detach(&mut world, other, "found");
    attach(&mut world, consumer, "found");
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(left), None);
    // The session is over, as the answer to the next call says. This call takes the place of the
    // one before.
    let end = wait_for_end(&mut world, consumer);
    assert_eq!((world.ended(end), &world.rejected[..]), (Some(String::new()), &[left][..]));
}

#[test]
fn a_session_knows_the_producers_that_it_missed() {
    use esatto_schema::{DEPARTED_FIELD, UNREACHED, UNREACHED_DATA_SOURCES_FIELD, WITHOUT_DATA, departed};
    let mut world = World::new();
    world.service.remember_departed_producers(1 << 20);
    // It is there before the session, starts, and gives nothing.
    let before = starting(&mut world);
    world.advance_ms(1);
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds", "track_event"]));
    let other = world.consumer();
    world.enable(other, &config(&["other"]));
    started(&mut world, &before, 1);
    world.feed(Input::ProducerDisconnected(before.client));
    // The next ones end before they have started, after that, and after their first data.
    let [unreached, without_data, mut with_data] = [(); 3].map(|()| starting(&mut world));
    started(&mut world, &without_data, 3);
    started(&mut world, &with_data, 4);
    world.commit(&mut with_data, 1, 1, 0, &[&packet("data")]);
    // One ends before it has offered anything. The other one only tells triggers.
    let [idle, triggering] = [(); 2].map(|()| world.producer("idle"));
    world.producer_call(triggering.client, producer_port::method::ActivateTriggers::METHOD, &[]);
    for producer in [unreached, without_data, with_data, idle, triggering] {
        world.feed(Input::ProducerDisconnected(producer.client));
    }
    let told = |world: &mut World, consumer| {
        let call = world.consumer_call(consumer, method::QueryServiceState::METHOD, &[]);
        let state = Fields::new(world.replies[&call][0].body.as_bytes()).next().unwrap().as_bytes().to_vec();
        let entries = Fields::new(&state).filter(|field| field.id == DEPARTED_FIELD);
        let missed = |field: &esatto_protozero::Field<'_>| field.id == departed::MISSED;
        let values = entries.flat_map(|entry| {
            Fields::new(entry.as_bytes()).filter(missed).map(|field| field.as_u64()).collect::<Vec<_>>()
        });
        values.collect::<Vec<_>>()
    };
    assert_eq!(told(&mut world, consumer), [UNREACHED, WITHOUT_DATA, UNREACHED]);
    assert_eq!(told(&mut world, other), []);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let ends = "; 2 producers ended before the session reached them";
    assert!(world.log.iter().any(|line| line.ends_with(ends)), "{:?}", world.log);
    let packets = world.read(consumer);
    let named = packets.iter().filter_map(|packet| TracePacketReader::new(packet).service_event()).find_map(|event| {
        let field = Fields::new(event.as_bytes()).find(|field| field.id == UNREACHED_DATA_SOURCES_FIELD)?;
        Some(DataSources::decode(field.as_bytes()).unwrap())
    });
    let sources = named.unwrap().data_source;
    let names = sources.iter().map(|source| (source.producer_name.clone(), source.data_source_name.clone()));
    let some = |name: &str| Some(name.into());
    assert_eq!(names.collect::<Vec<_>>(), [(some("p"), some("ds")), (some("idle"), some(""))]);
}

#[test]
fn a_consumer_with_a_session_is_told_of_departed_producers() {
    use esatto_schema::{DEPARTED_FIELD, departed};
    // The names of the data sources, and the number of forgotten producers.
    let told = |world: &mut World, consumer| {
        let call = world.consumer_call(consumer, method::QueryServiceState::METHOD, &[]);
        let body = world.replies[&call][0].body.clone();
        let response = QueryServiceStateResponse::decode(body.as_bytes()).unwrap();
        assert!(response.service_state.unwrap().producers.is_empty());
        let state = Fields::new(body.as_bytes()).next().unwrap().as_bytes().to_vec();
        let (mut sources, mut forgotten) = (0, None);
        for entry in Fields::new(&state).filter(|field| field.id == DEPARTED_FIELD) {
            for field in Fields::new(entry.as_bytes()) {
                match field.id {
                    departed::DATA_SOURCE => sources += 1,
                    departed::FORGOTTEN => forgotten = Some(field.as_u64()),
                    _ => {}
                }
            }
        }
        (sources, forgotten)
    };
    for max_bytes in [0, 8, 1200, 1 << 20] {
        let mut world = World::new();
        world.service.remember_departed_producers(max_bytes);
        let early = starting(&mut world);
        world.feed(Input::ProducerDisconnected(early.client));
        let consumer = world.consumer();
        world.enable(consumer, &config(&[]));
        for _ in 0..8 {
            let producer = starting(&mut world);
            world.feed(Input::ProducerDisconnected(producer.client));
        }
        let (sources, forgotten) = told(&mut world, consumer);
        match max_bytes {
            0 => assert_eq!((sources, forgotten), (0, None)),
            8 => assert_eq!((sources, forgotten), (0, Some(8))),
            1200 => assert!((1..8).contains(&sources) && forgotten == Some(8 - sources), "{sources} {forgotten:?}"),
            _ => assert_eq!((sources, forgotten), (8, Some(0))),
        }
        let other = world.consumer();
        assert_eq!(told(&mut world, other), (0, None));
        let late = world.consumer();
        world.enable(late, &config(&[]));
        assert_eq!(told(&mut world, late), (0, forgotten.map(|_| 0)));
    }
}
