//! Peers that vanish, hang or come back (`docs/spec/service.md §28`).

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_schema::{DataSourceDescriptor, TraceConfig};
use esatto_service::{ClientId, FileId, Input, TimerId};

use crate::world::{World, config, packet};

#[test]
fn committed_data_survive_their_producer() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    let mut other = world.producer("other");
    world.register(&producer, "ds");
    world.register(&other, "ds");
    let consumer = world.consumer();
    let end = world.enable(consumer, &config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("before")]);
    world.feed(Input::ProducerDisconnected(producer.client));
    world.commit(&mut other, 1, 1, 0, &[&packet("other")]);
    assert_eq!(world.ended(end), None, "the session goes on");
    assert_eq!(world.read_texts(consumer), ["before", "other"]);
}

#[test]
fn a_producer_that_reconnects_is_set_up_again() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("first life")]);
    world.feed(Input::ProducerDisconnected(producer.client));
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    assert_eq!(world.commands(&producer).len(), 3);
    world.commit(&mut producer, 1, 1, 0, &[&packet("second life")]);
    assert_eq!(world.read_texts(consumer), ["first life", "second life"]);
}

#[test]
fn a_session_does_not_wait_for_the_stop_of_a_disconnected_producer() {
    let mut world = World::new();
    let producer = world.producer("p");
    let descriptor =
        DataSourceDescriptor { name: Some("ds".into()), will_notify_on_stop: Some(true), ..Default::default() };
    world.register_as(&producer, descriptor);
    let consumer = world.consumer();
    let end = world.enable(consumer, &config(&["ds"]));
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(end), None);
    world.feed(Input::ProducerDisconnected(producer.client));
    assert_eq!(world.ended(end).as_deref(), Some(""));
}

#[test]
fn a_flush_does_not_wait_for_a_disconnected_producer() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
    world.feed(Input::ProducerDisconnected(producer.client));
    assert!(world.is_answered(flush) && !world.rejected.contains(&flush));
    world.advance_ms(5000);
    assert!(!world.rejected.contains(&flush), "answered twice");
}

#[test]
fn a_consumer_that_disconnects_ends_its_session() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let other = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.enable(other, &config(&["ds"]));
    world.commands(&producer);
    world.feed(Input::ConsumerDisconnected(consumer));
    let stops: Vec<_> = world.commands(&producer).into_iter().filter_map(|command| command.stop_data_source).collect();
    assert_eq!(stops.len(), 1);
    world.commit(&mut producer, 1, 1, 0, &[&packet("lost")]);
    world.commit(&mut producer, 2, 2, 0, &[&packet("kept")]);
    assert_eq!(world.read_texts(other), ["kept"]);
}

#[test]
fn a_consumer_may_disconnect_while_its_session_stops() {
    let mut world = World::new();
    let producer = world.producer("p");
    let descriptor =
        DataSourceDescriptor { name: Some("ds".into()), will_notify_on_stop: Some(true), ..Default::default() };
    world.register_as(&producer, descriptor);
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { duration_ms: Some(100), ..config(&["ds"]) });
    world.consumer_call(consumer, method::Flush::METHOD, &[]);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    world.feed(Input::ConsumerDisconnected(consumer));
    assert_eq!(world.timers(), 0);
}

#[test]
fn a_producer_without_memory_is_removed_at_once() {
    let mut world = World::new();
    let other = world.producer("other");
    world.register(&other, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.memory_is_available = false;
    let unlucky = world.producer("unlucky");
    world.register(&unlucky, "ds");
    assert_eq!(world.closed_clients, [unlucky.client]);

    // Until the end of its connection arrives, no client waits for it, and its calls have no
    // effect.
    world.memory_is_available = true;
    world.commands(&other);
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
    let asked = world.commands(&other).into_iter().find_map(|command| command.flush).unwrap();
    world.acknowledge_flush(&other, asked.request_id.unwrap());
    assert!(world.is_answered(flush));
    world.register(&unlucky, "ds");
    assert_eq!(world.created.iter().filter(|(client, ..)| *client == unlucky.client).count(), 1);
    assert_eq!(world.commands(&unlucky).len(), 0);
    world.feed(Input::ProducerDisconnected(unlucky.client));
    assert_eq!(world.closed_clients, [unlucky.client]);
}

#[test]
fn inputs_for_unknown_objects_are_ignored() {
    let mut world = World::new();
    let nobody = ClientId(999);
    world.feed(Input::ProducerDisconnected(nobody));
    world.feed(Input::ConsumerDisconnected(nobody));
    world.feed(Input::Ready(nobody));
    world.feed(Input::TimerExpired(TimerId(999)));
    world.feed(Input::SharedBufferCreated { client: nobody, buffer: None });
    world.feed(Input::FileWritten { file: FileId(9), result: Ok(()) });
    world.feed(Input::FileOpened { file: FileId(9), result: Err(String::new()) });
    let call = world.consumer_call(nobody, method::ReadBuffers::METHOD, &[]);
    assert_eq!(world.rejected, [call]);
}
