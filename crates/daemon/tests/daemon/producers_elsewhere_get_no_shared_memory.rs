//! A producer on a socket that carries no descriptors is told to send its chunks by value.

use crate::lab::{Lab, Producer, barrier, config, enable, packet, read, tcp_address};

#[test]
fn and_its_packets_are_in_the_trace() {
    let lab = Lab::start_with(|options| options.producers.push(tcp_address()));
    let mut consumer = lab.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let mut producer = Producer::connect(&lab.daemon.producers()[1]);
    assert!(producer.emulated);
    producer.await_start();
    assert!(!producer.shares_memory());
    producer.commit(&packet(5));

    let is_it = |packet: &Vec<u8>| packet.windows(5).any(|part| part == b"xxxxx");
    let found = read(&mut consumer).iter().filter(|packet| is_it(packet)).count();
    assert_eq!(found, 1);
}

#[test]
fn and_one_on_a_unix_socket_does() {
    let lab = Lab::start();
    let mut consumer = lab.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    let mut producer = lab.producer();
    assert!(!producer.emulated);
    producer.await_start();
    assert!(producer.shares_memory());
}
