//! Flushes, on request and periodic.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::{DataSourceDescriptor, FlushRequest, TraceConfig, trace_config};

use crate::world::{World, buffer, config, packet};

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

    let flush = world.consumer_call(consumer, method::Flush::METHOD, &request);
    let asked = world.commands(&second).remove(0).flush.unwrap();
    assert_eq!((asked.data_source_ids.len(), asked.flags), (1, Some(0x24)));
    let later = world.consumer_call(consumer, method::Flush::METHOD, &request);
    let id = asked.request_id.unwrap();
    world.acknowledge_flush(&first, id);
    assert!(!world.is_answered(flush));
    world.acknowledge_flush(&second, id + 1);
    assert!(world.is_answered(flush) && !world.is_answered(later));
    world.acknowledge_flush(&first, id + 1);
    assert!(world.is_answered(later), "one acknowledgement is for all flushes before it");

    let late = world.consumer_call(consumer, method::Flush::METHOD, &request);
    world.advance_ms(100);
    assert_eq!(world.rejected, [late]);
}

#[test]
fn flushes_that_need_no_answer_and_flushes_that_get_none() {
    let mut world = World::new();
    let consumer = world.consumer();
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
    assert_eq!(world.rejected, [flush], "nobody waits for ever");
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&[]) });
    let early = world.consumer_call(consumer, method::Flush::METHOD, &[]);
    assert_eq!(world.rejected, [flush, early]);
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
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
fn rings_ask_for_names_while_they_fill() {
    let clears_of = |interval_ms: u32, config: TraceConfig, commits: u32| {
        let mut world = World::new();
        world.service.keep_names(interval_ms);
        let mut producer = world.producer("p");
        let descriptor = DataSourceDescriptor {
            name: Some("ds".into()),
            handles_incremental_state_clear: Some(true),
            ..Default::default()
        };
        world.register_as(&producer, descriptor);
        let consumer = world.consumer();
        world.enable(consumer, &config);
        for id in 0..commits {
            world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(1000))]);
        }
        world.commands(&producer).iter().filter(|command| command.clear_incremental_state.is_some()).count()
    };
    let ring = || TraceConfig { buffers: vec![buffer(64)], ..config(&["ds"]) };
    assert_eq!(clears_of(0, ring(), 4), 0, "a ring that is almost empty");
    assert!((15..=17).contains(&clears_of(0, ring(), 128)), "eight times while the ring fills");
    let mut discard = ring();
    discard.buffers[0].fill_policy = Some(FillPolicy::DISCARD);
    assert_eq!(clears_of(0, discard, 128), 0);
    let clears =
        |period_ms| trace_config::IncrementalStateConfig { clear_period_ms: Some(period_ms), ..Default::default() };
    let never = TraceConfig { incremental_state_config: Some(clears(0)), ..ring() };
    assert_eq!(clears_of(0, never, 128), 0);
    let seldom = TraceConfig { incremental_state_config: Some(clears(60_000)), ..ring() };
    assert!((15..=17).contains(&clears_of(0, seldom, 128)), "a fixed period can be too long");
    assert_eq!(clears_of(10, ring(), 128), 1, "but not all the time, while no time passes");
}

#[test]
fn only_the_writers_of_a_full_ring_are_asked_for_names() {
    let mut world = World::new();
    world.service.keep_names(10);
    let mut producer = world.producer("p");
    for name in ["small", "large"] {
        let descriptor = DataSourceDescriptor {
            name: Some(name.into()),
            handles_incremental_state_clear: Some(true),
            ..Default::default()
        };
        world.register_as(&producer, descriptor);
    }
    let consumer = world.consumer();
    let mut config = TraceConfig { buffers: vec![buffer(64), buffer(4096)], ..config(&["small", "large"]) };
    config.data_sources[1].config.as_mut().expect("it has one").target_buffer = Some(1);
    world.enable(consumer, &config);
    let mut of_small = None;
    for command in world.commands(&producer) {
        if let Some(start) = &command.start_data_source {
            let config = start.config.as_ref().expect("it has one");
            if config.name.as_ref().is_some_and(|name| name.as_bytes() == b"small") {
                of_small = start.new_instance_id;
            }
        }
    }
    let mut asked = Vec::new();
    for id in 0..64 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(1000))]);
        world.advance_ms(1);
        for command in world.commands(&producer) {
            asked.extend(command.clear_incremental_state.map(|clear| clear.data_source_ids));
        }
    }
    assert!((4..=8).contains(&asked.len()), "{asked:?}");
    assert!(asked.iter().all(|ids| ids[..] == [of_small.expect("it started")]), "{asked:?}");
}
