//! Frames: input that would fit into none is refused with a reason, and no client is sent more than
//! it takes.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use esatto_protozero::{Fields, Owned};
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{
    ActivateTriggersRequest, DataSourceConfig, DataSourceDescriptor, DetachRequest, EVENTS_LOST_FIELD,
    ObserveEventsRequest, ObserveEventsResponse, QueryServiceStateResponse, TraceConfig, observable_events,
};
use esatto_service::Input;

use crate::bounds::{producer_of, trigger, with_triggers};
use crate::world::{FakeProducer, World, config, source};

#[test]
fn a_data_source_that_fits_into_no_reply_is_not_registered() {
    let mut world = World::new();
    let producer = world.producer("p");
    let register = |world: &mut World, bytes: usize| {
        let mut unknown_fields = vec![0xfa, 1];
        let length = bytes - 3 - 5;
        unknown_fields.extend([length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8]);
        unknown_fields.resize(bytes - 3, 0);
        world.register_as(
            &producer,
            DataSourceDescriptor { name: Some("d".into()), unknown_fields, ..Default::default() },
        );
    };
    register(&mut world, 131_035);
    assert_eq!((world.service.holdings().registrations, world.warnings.len()), (1, 0));
    register(&mut world, 131_036);
    assert_eq!(world.service.holdings().registrations, 1);
    assert!(world.warnings[0].contains("its descriptor has 131036 bytes, at most 131035"), "{}", world.warnings[0]);
    let consumer = world.consumer();
    let call = world.consumer_call(consumer, consumer_port::method::QueryServiceState::METHOD, &[]);
    let sizes: Vec<usize> = world.replies[&call].iter().map(|reply| reply.body.as_bytes().len()).collect();
    // A producer's number has up to three bytes, this one has one.
    assert_eq!(sizes.last(), Some(&(131_072 - 21 - 2)), "{sizes:?}");
}

#[test]
fn the_state_is_sent_as_fast_as_the_consumer_takes_it() {
    let mut world = World::new();
    let producers: Vec<FakeProducer> = (0..64).map(|uid| producer_of(&mut world, uid, 0, "p")).collect();
    for producer in &producers {
        for id in 1..=4 {
            let descriptor = DataSourceDescriptor {
                name: Some("large".into()),
                id: Some(id),
                unknown_fields: [&[0xfa, 1, 0xb0, 0xff, 0x07][..], &[0; 130_992]].concat(),
                ..Default::default()
            };
            world.register_as(producer, descriptor);
        }
    }
    let registered = world.service.holdings().registrations;
    assert!(registered > 200, "{registered}");
    world.is_slow = true;
    let consumer = world.consumer();
    let call = world.consumer_call(consumer, consumer_port::method::QueryServiceState::METHOD, &[]);
    let bytes = |world: &World| world.replies[&call].iter().map(|reply| reply.body.as_bytes().len()).sum::<usize>();
    assert!(bytes(&world) < 1 << 20, "{}", bytes(&world));
    world.is_slow = false;
    world.feed(Input::Ready(consumer));
    let replies = &world.replies[&call];
    assert!(!replies.back().unwrap().has_more);
    let states: Vec<_> =
        replies.iter().map(|reply| QueryServiceStateResponse::decode(reply.body.as_bytes()).unwrap()).collect();
    let told: usize = states.iter().map(|state| state.service_state.as_ref().unwrap().data_sources.len()).sum();
    assert_eq!(told, registered);
}

#[test]
fn a_config_that_fits_into_no_command_is_refused() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let enable = |world: &mut World, bytes: usize| {
        let large = DataSourceConfig {
            name: Some("ds".into()),
            legacy_config: Some("x".repeat(bytes).into()),
            ..Default::default()
        };
        let mut config = config(&["ds"]);
        config.data_sources[0].config = Some(Box::new(large));
        world.enable(consumer, &config)
    };
    let call = enable(&mut world, 131_000);
    assert!(world.ended(call).unwrap().contains("fit into a message to a producer"), "{:?}", world.ended(call));
    let call = enable(&mut world, 130_900);
    assert_eq!(world.ended(call), None);
    let replies = &world.replies[&producer.commands];
    assert!(replies.iter().all(|reply| reply.body.as_bytes().len() <= 131_072 - 21));
    assert!(world.commands(&producer).iter().any(|command| command.start_data_source.is_some()));
}

#[test]
fn a_slow_producer_gets_only_the_commands_it_can_take() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let large = DataSourceConfig {
        name: Some("ds".into()),
        legacy_config: Some("x".repeat(120_000).into()),
        ..Default::default()
    };
    let mut config = config(&["ds"]);
    config.data_sources[0].config = Some(Box::new(large));
    world.is_slow = true;
    for _ in 0..100 {
        world.enable(consumer, &config);
        world.consumer_call(consumer, consumer_port::method::FreeBuffers::METHOD, &[]);
    }
    let queued =
        |world: &World| world.replies[&producer.commands].iter().map(|r| r.body.as_bytes().len()).sum::<usize>();
    assert!(queued(&world) < 3 << 19, "{}", queued(&world));
    world.enable(consumer, &config);
    world.is_slow = false;
    world.feed(Input::Ready(producer.client));
    let commands = world.commands(&producer);
    let mut alive = std::collections::BTreeSet::new();
    for command in &commands {
        if let Some(setup) = &command.setup_data_source {
            assert!(alive.insert(setup.new_instance_id.unwrap()));
        }
        if let Some(start) = &command.start_data_source {
            assert!(alive.contains(&start.new_instance_id.unwrap()), "started before it is set up");
        }
        if let Some(stop) = &command.stop_data_source {
            assert!(alive.remove(&stop.instance_id.unwrap()), "stopped before it is set up");
        }
    }
    assert_eq!(alive.into_iter().collect::<Vec<_>>(), [101], "the last one is at work, the others are over");
}

#[test]
fn a_slow_observer_gets_the_number_of_lost_events() {
    let mut world = World::new();
    let consumer = world.consumer();
    let request = ObserveEventsRequest {
        events_to_observe: vec![observable_events::Type::TYPE_CLONE_TRIGGER_HIT],
        ..Default::default()
    };
    let observing = world.consumer_call(consumer, consumer_port::method::ObserveEvents::METHOD, &request.encode());
    let call = world.enable(consumer, &with_triggers(TriggerMode::CLONE_SNAPSHOT, vec![trigger("t", 0)]));
    assert_eq!(world.ended(call), None);
    let name = "n".repeat(131_040);
    let producer = world.producer(&name);
    world.is_slow = true;
    for _ in 0..10 {
        let request = ActivateTriggersRequest { trigger_names: vec!["t".into(); 1000], ..Default::default() };
        world.producer_call(producer.client, producer_port::method::ActivateTriggers::METHOD, &request.encode());
    }
    let bytes = world.replies[&observing].iter().map(|reply| reply.body.as_bytes().len()).sum::<usize>();
    assert!(bytes < 1 << 20, "{bytes}");
    world.is_slow = false;
    world.feed(Input::Ready(consumer));
    let (mut hits, mut lost) = (0, 0);
    for reply in &world.replies[&observing] {
        assert!(reply.has_more && reply.body.as_bytes().len() < 131_000);
        let events = ObserveEventsResponse::decode(reply.body.as_bytes()).unwrap().events.unwrap();
        hits += u64::from(events.clone_trigger_hit.is_some());
        let field = Fields::new(&events.unknown_fields).find(|field| field.id == EVENTS_LOST_FIELD);
        lost += field.map_or(0, |field| field.as_u64());
        let name = events.clone_trigger_hit.and_then(|hit| hit.producer_name).unwrap();
        assert_eq!(name.as_bytes(), &[b'n'; 4096][..], "the name is cut");
    }
    assert_eq!(hits + lost, 10_000);
    assert!(hits > 200 && lost > 0, "{hits} {lost}");
}

#[test]
fn names_that_are_too_long_are_refused_with_a_reason() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, &"d".repeat(4097));
    assert!(world.warnings[0].contains("its name has 4097 bytes, at most 4096"), "{:?}", world.warnings);
    world.register(&producer, &"d".repeat(4096));
    assert_eq!(world.service.holdings().registrations, 1);
    let consumer = world.consumer();
    let long = || Some("n".repeat(4097).into());
    let named = TraceConfig { unique_session_name: long(), ..config(&[]) };
    let call = world.enable(consumer, &named);
    assert_eq!(world.ended(call).unwrap(), "unique_session_name has 4097 bytes, at most 4096 are possible");
    let call = world.enable(consumer, &with_triggers(TriggerMode::STOP_TRACING, vec![trigger(&"t".repeat(4097), 0)]));
    assert!(world.ended(call).unwrap().starts_with("the name of a trigger has 4097 bytes"));
    let absurd = TraceConfig { data_sources: vec![source(&"\u{1}".repeat(120_000))], ..Default::default() };
    let call = world.enable(consumer, &absurd);
    assert!(world.ended(call).unwrap().len() < 5000, "errors that quote names are cut");
    world.enable(consumer, &config(&[]));
    let request = DetachRequest { key: long(), ..Default::default() }.encode();
    let call = world.consumer_call(consumer, consumer_port::method::Detach::METHOD, &request);
    assert!(world.rejected.contains(&call));
}
