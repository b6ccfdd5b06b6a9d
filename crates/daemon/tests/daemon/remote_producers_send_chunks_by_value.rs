//! The service tells a producer on a socket without descriptors to send its chunks by value.

use crate::harness::{Harness, Producer, barrier, config, enable, packet, read, tcp_address};

#[test]
fn their_packets_are_in_the_trace() {
    let harness = Harness::start_with(|options| options.producers.push(tcp_address()));
    let mut consumer = harness.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let mut producer = Producer::connect(&harness.daemon.producers()[1]);
    assert!(producer.emulated);
    producer.await_start();
    assert!(!producer.shares_memory());
    producer.commit(&packet(5));

    let is_it = |packet: &Vec<u8>| packet.windows(5).any(|part| part == b"xxxxx");
    let found = read(&mut consumer).iter().filter(|packet| is_it(packet)).count();
    assert_eq!(found, 1);
}

#[test]
fn a_producer_on_a_unix_socket_shares_memory() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    let mut producer = harness.producer();
    assert!(!producer.emulated);
    producer.await_start();
    assert!(producer.shares_memory());
}
