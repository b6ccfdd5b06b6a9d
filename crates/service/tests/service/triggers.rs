//! Sessions that producers start or stop.

use esatto_protozero::Owned;
use esatto_schema::trace_config::{TriggerConfig, trigger_config};
use esatto_schema::{ActivateTriggersRequest, TraceConfig, TracePacketReader, producer_port};
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
    world.producer_call(producer.client, producer_port::Method::ActivateTriggers, &request.encode())
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
fn without_a_stop_trigger_nothing_is_to_be_seen() {
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
fn a_stop_trigger_before_the_start_ends_the_session_too() {
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
    world.consumer_call(consumer, esatto_schema::consumer_port::Method::DisableTracing, &[]);
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
