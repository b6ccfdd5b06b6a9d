//! The queue for a producer is bounded. If it is full, the service disconnects the producer.

use crate::harness::{DEADLINE, Harness, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

#[test]
fn other_clients_are_served() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    let stream = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
    let mut calls = Vec::new();
    for id in 0..1000 {
        encode::invoke_method(&mut calls, id, 1, 99, &[], false).unwrap();
    }
    let mut sent = 0;
    let disconnected = loop {
        match stream.send(&calls[sent % calls.len()..], None) {
            // The service is busy, but it still reads.
            Ok(0) => std::thread::yield_now(),
            Ok(n) => sent += n,
            Err(Error::Disconnected) => break true,
            Err(e) => panic!("{e}"),
        }
        if sent > 256 << 20 {
            break false;
        }
    };
    assert!(disconnected, "the service has taken {sent} bytes of calls whose answers nobody reads");
    barrier(&mut consumer);
    assert_eq!(harness.daemon.stats().stalled_peers, 1);
}
