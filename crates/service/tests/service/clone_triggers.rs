//! Triggers that ask for a snapshot: the service tells the consumer of each, and the session itself
//! is never read.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_ports::producer_port;
use esatto_protozero::Owned;
use esatto_schema::observable_events::CloneTriggerHit;
use esatto_schema::trace_config::{TriggerConfig, trigger_config};
use esatto_schema::{ActivateTriggersRequest, ObserveEventsRequest, ObserveEventsResponse, TraceConfig};
use esatto_schema::{TracePacketReader, observable_events};
use esatto_service::{CallId, ClientId};

use crate::clones::{answer, ask, by_id};
use crate::world::{FakeProducer, World, config, packet, text_of};

fn triggered(mode: TriggerConfig, triggers: &[(&str, u32)]) -> TraceConfig {
    let trigger = |&(name, stop_delay_ms): &(&str, u32)| trigger_config::Trigger {
        name: Some(name.into()),
        stop_delay_ms: Some(stop_delay_ms),
        ..Default::default()
    };
    let triggers = triggers.iter().map(trigger).collect();
    let trigger_config = TriggerConfig { triggers, trigger_timeout_ms: Some(10_000), ..mode };
    TraceConfig { trigger_config: Some(trigger_config), ..config(&["ds"]) }
}

fn clone_snapshot() -> TriggerConfig {
    TriggerConfig { trigger_mode: Some(trigger_config::TriggerMode::CLONE_SNAPSHOT), ..Default::default() }
}

fn if_available() -> TriggerConfig {
    TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode::STOP_TRACING),
        use_clone_snapshot_if_available: Some(true),
        ..Default::default()
    }
}

fn activate(world: &mut World, producer: &FakeProducer, names: &[&str]) {
    let request = ActivateTriggersRequest {
        trigger_names: names.iter().map(|&name| name.into()).collect(),
        ..Default::default()
    };
    world.producer_call(producer.client, producer_port::method::ActivateTriggers::METHOD, &request.encode());
}

fn observe(world: &mut World, consumer: ClientId) -> CallId {
    let events_to_observe = vec![observable_events::Type::TYPE_CLONE_TRIGGER_HIT];
    let request = ObserveEventsRequest { events_to_observe, ..Default::default() };
    world.consumer_call(consumer, method::ObserveEvents::METHOD, &request.encode())
}

/// The hits since the last call, a message each.
fn hits(world: &mut World, call: CallId) -> Vec<CloneTriggerHit> {
    let replies: Vec<_> = world.replies.get_mut(&call).map(|replies| replies.drain(..).collect()).unwrap_or_default();
    replies
        .iter()
        .map(|reply| {
            let events = ObserveEventsResponse::decode(reply.body.as_bytes()).unwrap().events.unwrap();
            *events.clone_trigger_hit.expect("a hit")
        })
        .collect()
}

fn names(hits: &[CloneTriggerHit]) -> Vec<String> {
    hits.iter().map(|hit| hit.trigger_name.clone().unwrap().to_string()).collect()
}

/// A session of `config` whose consumer observes clone triggers.
fn setting(config: &TraceConfig) -> (World, FakeProducer, ClientId, CallId, CallId) {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let observed = observe(&mut world, consumer);
    let end = world.enable(consumer, config);
    (world, producer, consumer, observed, end)
}

#[test]
fn each_trigger_packet_has_all_known_facts() {
    for mode in [clone_snapshot(), if_available()] {
        let (mut world, producer, _, observed, end) = setting(&triggered(mode, &[("now", 0), ("later", 500)]));
        let hit_at = world.now.boottime_ns;
        activate(&mut world, &producer, &["later", "other", "now"]);
        let told = hits(&mut world, observed);
        assert_eq!(names(&told), ["now"]);
        assert_eq!((told[0].tracing_session_id, told[0].trigger_delay_ms), (Some(1), Some(0)));
        world.advance_ms(499);
        assert!(hits(&mut world, observed).is_empty());
        world.advance_ms(1);
        let told = hits(&mut world, observed);
        assert_eq!(names(&told), ["later"]);
        assert_eq!((told[0].producer_name.clone(), told[0].producer_uid), (Some("p".into()), Some(1000)));
        assert_eq!((told[0].boot_time_ns, told[0].trigger_delay_ms), (Some(hit_at), Some(500)));
        assert_eq!(world.ended(end), None, "a snapshot does not end the session");
    }
}

#[test]
fn two_clone_triggers_are_two_messages() {
    let (mut world, producer, _, observed, _) = setting(&triggered(clone_snapshot(), &[("a", 0), ("b", 0)]));
    activate(&mut world, &producer, &["a", "b", "a"]);
    assert_eq!(names(&hits(&mut world, observed)), ["a", "b", "a"]);
}

#[test]
fn clone_triggers_reach_observing_consumers_only() {
    let (mut world, producer, consumer, observed, _) = setting(&triggered(clone_snapshot(), &[("a", 0)]));
    let stop_observing = ObserveEventsRequest::default().encode();
    world.consumer_call(consumer, method::ObserveEvents::METHOD, &stop_observing);
    world.replies.remove(&observed);
    activate(&mut world, &producer, &["a"]);
    assert!(hits(&mut world, observed).is_empty());
    let observed = observe(&mut world, consumer);
    activate(&mut world, &producer, &["a"]);
    assert_eq!(hits(&mut world, observed).len(), 1, "and only of what comes");
}

#[test]
fn the_session_is_read_through_clones_only_and_each_tells_its_triggers() {
    let (mut world, mut producer, consumer, _, _) = setting(&triggered(clone_snapshot(), &[("a", 0)]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    for expected_triggers in [1, 2] {
        for _ in 0..expected_triggers {
            activate(&mut world, &producer, &["a"]);
        }
        assert!(world.read(consumer).is_empty());
        let cloner = world.consumer();
        let call = ask(&mut world, cloner, &by_id(1));
        world.acknowledge_flush(&producer, u64::MAX);
        assert_eq!(answer(&world, call).unwrap().success, Some(true));
        let packets = world.read(cloner);
        assert_eq!(packets.iter().filter_map(|packet| text_of(packet)).collect::<Vec<_>>(), ["x"]);
        let told = packets.iter().filter(|packet| TracePacketReader::new(packet).trigger().is_some()).count();
        assert_eq!(told, expected_triggers, "those since the clone before");
    }
}

#[test]
fn clones_are_not_triggered_and_need_no_trigger() {
    let (mut world, mut producer, _, observed, _) = setting(&triggered(clone_snapshot(), &[("a", 0)]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    let cloner = world.consumer();
    ask(&mut world, cloner, &by_id(1));
    world.acknowledge_flush(&producer, u64::MAX);
    let cloners_events = observe(&mut world, cloner);
    activate(&mut world, &producer, &["a"]);
    assert_eq!(hits(&mut world, observed).len(), 1);
    assert!(hits(&mut world, cloners_events).is_empty());
    assert_eq!(world.read_texts(cloner), ["x"]);
}

#[test]
fn without_a_trigger_the_session_ends_in_time() {
    let (mut world, producer, consumer, observed, end) = setting(&triggered(clone_snapshot(), &[("a", 3000)]));
    world.advance_ms(8_000);
    activate(&mut world, &producer, &["a"]);
    world.advance_ms(2_000);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    world.advance_ms(1_000);
    assert_eq!(names(&hits(&mut world, observed)), ["a"], "a trigger that came in time is told after the end, too");
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert_eq!(world.timers(), 0);
}

#[test]
fn triggers_that_wait_are_limited() {
    let (mut world, producer, _, observed, _) = setting(&triggered(clone_snapshot(), &[("a", 500)]));
    activate(&mut world, &producer, &["a"; 300]);
    let told: Vec<_> = world.warnings.iter().filter(|warning| warning.contains("wait already")).collect();
    assert_eq!(told, ["256 clone triggers of a session wait already: 44 are ignored"], "once for the call");
    world.advance_ms(500);
    assert_eq!(hits(&mut world, observed).len(), 256);
}
