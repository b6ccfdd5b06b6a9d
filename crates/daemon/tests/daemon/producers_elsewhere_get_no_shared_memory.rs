//! A producer on a socket that carries no descriptors is told to send its chunks by value.

use crate::lab::{DEADLINE, Lab, Producer, barrier, config, enable, packet, slices};

#[test]
fn and_its_packets_are_in_the_trace() {
    // Any free port: the kernel's choice cannot be asked for, so one that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let lab = Lab::start_with(|options| options.producers.push(format!("127.0.0.1:{port}").parse().unwrap()));
    let mut consumer = lab.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let mut producer = Producer::connect(&lab.daemon.producers()[1]);
    assert!(producer.emulated);
    producer.await_start();
    assert!(!producer.shares_memory());
    producer.commit(&packet(5));

    let reading = consumer.send("ReadBuffers", &[], None).unwrap();
    let mut found = 0;
    loop {
        let reply = consumer.wait_reply(reading, Some(DEADLINE)).unwrap();
        found += slices(&reply.body).iter().filter(|slice| slice.windows(5).any(|part| part == b"xxxxx")).count();
        if !reply.has_more {
            break;
        }
    }
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
