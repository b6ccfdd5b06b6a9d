//! Sessions that producers start or stop.

use esatto_ports::Rpc as _;
use esatto_ports::producer_port;
use esatto_protozero::Owned;
use esatto_schema::trace_config::{TriggerConfig, trigger_config};
use esatto_schema::{ActivateTriggersRequest, TraceConfig, TracePacketReader};
use esatto_service::CallId;

use crate::world::{FakeProducer, World, config, packet};

fn triggered(mode: i32, triggers: &[(&str, u32)]) -> TraceConfig {
    let trigger = |&(name, stop_delay_ms): &(&str, u32)| trigger_config::Trigger {
        name: Some(name.into()),
        stop_delay_ms: Some(stop_delay_ms),
        ..Default::default()
    };
    let trigger_config = TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode(mode)),
        triggers: triggers.iter().map(trigger).collect(),
        trigger_timeout_ms: Some(10_000),
        ..Default::default()
    };
    TraceConfig { trigger_config: Some(trigger_config), ..config(&["ds"]) }
}

fn activate(world: &mut World, producer: &FakeProducer, names: &[&str]) -> CallId {
    let request = ActivateTriggersRequest {
        trigger_names: names.iter().map(|&name| name.into()).collect(),
        ..Default::default()
    };
    world.producer_call(producer.client, producer_port::method::ActivateTriggers::METHOD, &request.encode())
}

fn setting() -> (World, FakeProducer, esatto_service::ClientId) {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    (world, producer, consumer)
}

#[test]
fn a_start_trigger_starts_and_its_delay_is_the_duration() {
    let (mut world, mut producer, consumer) = setting();
    let end = world.enable(consumer, &triggered(1, &[("go", 500)]));
    assert!(world.commands(&producer).iter().all(|command| command.start_data_source.is_none()));
    activate(&mut world, &producer, &["other"]);
    assert!(world.read(consumer).is_empty(), "nothing is seen before the trigger");
    activate(&mut world, &producer, &["go", "go"]);
    assert!(world.commands(&producer)[0].start_data_source.is_some());
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    let packets = world.read(consumer);
    let triggers: Vec<_> = packets.iter().filter_map(|packet| TracePacketReader::new(packet).trigger()).collect();
    assert_eq!(triggers.len(), 2);
    assert_eq!((triggers[0].trigger_name(), triggers[0].stop_delay_ms()), (Some(&b"go"[..]), Some(500)));
    let echo = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_config()).unwrap();
    assert_eq!(echo.duration_ms(), Some(500));
    world.advance_ms(500);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(world.ended(end).as_deref(), Some(""));
}

#[test]
fn without_a_start_trigger_the_session_ends_in_time() {
    let (mut world, _, consumer) = setting();
    let end = world.enable(consumer, &triggered(1, &[("go", 500)]));
    world.advance_ms(9_999);
    assert_eq!(world.ended(end), None);
    world.advance_ms(1);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert!(world.read(consumer).is_empty());
}

#[test]
fn a_stop_trigger_stops_after_its_delay_and_makes_the_trace_visible() {
    let (mut world, mut producer, consumer) = setting();
    let end = world.enable(consumer, &triggered(2, &[("halt", 300)]));
    let setup = world.commands(&producer).remove(1).setup_data_source.unwrap();
    assert_eq!(setup.config.unwrap().trace_duration_ms, Some(0));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    assert!(world.read(consumer).is_empty());
    activate(&mut world, &producer, &["halt"]);
    activate(&mut world, &producer, &["halt"]);
    world.advance_ms(299);
    assert!(world.commands(&producer).is_empty());
    world.advance_ms(1);
    assert!(world.commands(&producer)[0].flush.is_some());
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert_eq!(world.read_texts(consumer), ["x"]);
}

#[test]
fn without_a_stop_trigger_the_trace_is_hidden() {
    let (mut world, mut producer, consumer) = setting();
    let end = world.enable(consumer, &triggered(2, &[("halt", 300)]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    world.advance_ms(20_000);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert!(world.read(consumer).is_empty());
}

#[test]
fn activations_are_limited_per_day() {
    let (mut world, producer, _) = setting();
    let mut limited = triggered(1, &[("go", 100)]);
    limited.trigger_config.as_mut().unwrap().triggers[0].max_per_24_h = Some(1);
    for expected in [true, false] {
        let consumer = world.consumer();
        world.enable(consumer, &limited);
        world.commands(&producer);
        activate(&mut world, &producer, &["go"]);
        let is_started = world.commands(&producer).iter().any(|command| command.start_data_source.is_some());
        assert_eq!(is_started, expected);
        world.feed(esatto_service::Input::ConsumerDisconnected(consumer));
    }
    let mut unlikely = triggered(1, &[("go", 100)]);
    unlikely.trigger_config.as_mut().unwrap().triggers[0].skip_probability = Some(1.0);
    let consumer = world.consumer();
    world.enable(consumer, &unlikely);
    world.commands(&producer);
    activate(&mut world, &producer, &["go"]);
    assert!(world.commands(&producer).is_empty());
}

#[test]
fn contradictory_trigger_configs_are_refused() {
    let (mut world, _, consumer) = setting();
    let mut refused = |config: TraceConfig| {
        let call = world.enable_with(consumer, &config, true);
        world.ended(call).expect("a refusal")
    };
    assert!(refused(triggered(5, &[])).contains("trigger_mode"));
    assert!(refused(triggered(3, &[])).contains("trigger_mode"));
    assert!(refused(triggered(1, &[("a", 1), ("a", 2)])).contains("two triggers"));
    assert!(refused(TraceConfig { duration_ms: Some(1), ..triggered(1, &[]) }).contains("duration_ms"));
    assert!(refused(TraceConfig { write_into_file: Some(true), ..triggered(2, &[]) }).contains("write_into_file"));
    let mut endless = triggered(1, &[]);
    endless.trigger_config.as_mut().unwrap().trigger_timeout_ms = None;
    assert!(refused(endless).contains("trigger_timeout_ms"));
}

#[test]
fn a_stop_trigger_before_the_start_also_ends_the_session() {
    let (mut world, producer, consumer) = setting();
    let deferred = TraceConfig { deferred_start: Some(true), ..triggered(2, &[("halt", 300)]) };
    let end = world.enable(consumer, &deferred);
    activate(&mut world, &producer, &["halt"]);
    world.advance_ms(300);
    assert_eq!(world.ended(end).as_deref(), Some(""));
}

#[test]
fn a_trigger_after_the_end_makes_the_trace_visible() {
    let (mut world, mut producer, consumer) = setting();
    let end = world.enable(consumer, &triggered(2, &[("halt", 300)]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    world.consumer_call(consumer, esatto_ports::consumer_port::method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert!(world.read(consumer).is_empty());
    activate(&mut world, &producer, &["halt"]);
    assert_eq!(world.timers(), 0, "there is nothing to stop");
    assert_eq!(world.read_texts(consumer), ["x"]);
}

#[test]
fn triggers_without_a_mode_hide_the_trace_until_one_comes() {
    let (mut world, mut producer, consumer) = setting();
    let mut unspecified = triggered(0, &[("any", 0)]);
    unspecified.trigger_config.as_mut().unwrap().trigger_timeout_ms = None;
    world.enable(consumer, &unspecified);
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    assert!(world.read(consumer).is_empty());
    activate(&mut world, &producer, &["any"]);
    assert_eq!(world.read_texts(consumer), ["x"]);
}

/// Number of activations, each for a new session, that start the session.
fn starts(world: &mut World, producer: &FakeProducer, config: &TraceConfig, activations: usize) -> usize {
    let mut started = 0;
    for _ in 0..activations {
        let consumer = world.consumer();
        world.enable(consumer, config);
        world.commands(producer);
        activate(world, producer, &["go"]);
        started += usize::from(world.commands(producer).iter().any(|command| command.start_data_source.is_some()));
        world.feed(esatto_service::Input::ConsumerDisconnected(consumer));
    }
    started
}

fn with_trigger(change: impl FnOnce(&mut trigger_config::Trigger)) -> TraceConfig {
    let mut config = triggered(1, &[("go", 100)]);
    change(&mut config.trigger_config.as_mut().unwrap().triggers[0]);
    config
}

#[test]
fn the_limit_counts_all_sessions_of_the_last_24_hours() {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let (mut world, producer, _) = setting();
    let limited = with_trigger(|trigger| trigger.max_per_24_h = Some(3));
    let unlimited = with_trigger(|_| {});
    assert_eq!(starts(&mut world, &producer, &unlimited, 2), 2);
    world.advance_ms(1000);
    assert_eq!(starts(&mut world, &producer, &limited, 3), 1, "those of the other sessions count");
    world.advance_ms(DAY_MS - 1000);
    assert_eq!(starts(&mut world, &producer, &limited, 3), 2, "two were 24 hours ago");
    // One that starts nothing any more counts all the same; one that matches no session does not.
    world.advance_ms(DAY_MS);
    let consumer = world.consumer();
    world.enable(consumer, &unlimited);
    activate(&mut world, &producer, &["go", "go", "other"]);
    world.feed(esatto_service::Input::ConsumerDisconnected(consumer));
    activate(&mut world, &producer, &["go"]);
    assert_eq!(starts(&mut world, &producer, &limited, 3), 1);
}

#[test]
fn some_activations_are_skipped_at_random() {
    let (mut world, producer, _) = setting();
    let unlikely = with_trigger(|trigger| trigger.skip_probability = Some(0.75));
    let started = starts(&mut world, &producer, &unlikely, 1000);
    assert!((200..300).contains(&started), "{started} of 1000 with 25 %");
    for (skip_probability, expected) in [(0.0, 10), (1.0, 0), (f64::NAN, 10), (-1.0, 10)] {
        let config = with_trigger(|trigger| trigger.skip_probability = Some(skip_probability));
        assert_eq!(starts(&mut world, &producer, &config, 10), expected, "{skip_probability}");
    }
}

#[test]
fn a_skipped_activation_does_not_count_for_the_limit() {
    let (mut world, producer, _) = setting();
    let skipped = with_trigger(|trigger| trigger.skip_probability = Some(1.0));
    starts(&mut world, &producer, &skipped, 5);
    let limited = with_trigger(|trigger| trigger.max_per_24_h = Some(1));
    assert_eq!(starts(&mut world, &producer, &limited, 2), 1);
}

#[cfg(feature = "regex")]
#[test]
fn a_trigger_may_be_for_certain_producers_only() {
    let (mut world, producer, _) = setting();
    for (pattern, expected) in [("p", 1), ("p|q", 1), ("", 1), ("q", 0), ("pp", 0), (".", 1), ("x*", 0)] {
        let config = with_trigger(|trigger| trigger.producer_name_regex = Some(pattern.into()));
        assert_eq!(starts(&mut world, &producer, &config, 1), expected, "{pattern:?}");
    }
    let consumer = world.consumer();
    let invalid = with_trigger(|trigger| trigger.producer_name_regex = Some("(".into()));
    let refused = world.enable(consumer, &invalid);
    assert!(world.ended(refused).unwrap().contains("producer_name_regex"));
}

#[test]
fn one_activation_reaches_every_session_that_waits_for_it() {
    let (mut world, producer, first) = setting();
    let second = world.consumer();
    let ends = [
        world.enable(first, &triggered(2, &[("halt", 100)])),
        world.enable(second, &triggered(2, &[("halt", 200), ("other", 1)])),
    ];
    activate(&mut world, &producer, &["halt"]);
    world.advance_ms(100);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(ends.map(|end| world.ended(end).is_some()), [true, false]);
    world.advance_ms(100);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(ends.map(|end| world.ended(end).is_some()), [true, true]);
}
