//! A consumer that reads slowly, or pauses, delays no other client and loses nothing.

use crate::harness::{DEADLINE, Harness, barrier, config, enable, packet, slices};
use std::time::Duration;

/// More than all buffers between the service and the consumer hold together.
const PACKETS: usize = 400;
const PACKET_BYTES: usize = 20_000;

#[test]
fn other_clients_are_served_meanwhile() {
    let harness = Harness::start();
    let mut slow = harness.consumer();
    slow.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut slow);
    let mut producer = harness.producer();
    producer.await_start();
    for _ in 0..PACKETS {
        producer.commit(&packet(PACKET_BYTES));
    }

    let reading = slow.send("ReadBuffers", &[], None).unwrap();
    // The consumer does not read. The service still serves others: this takes a new connection and
    // a full round.
    for _ in 0..3 {
        barrier(&mut harness.consumer());
        producer.commit(&packet(10));
    }
    assert_eq!(harness.daemon.stats().stalled_peers, 0);

    let mut bytes = 0;
    loop {
        let reply = slow.wait_reply(reading, Some(DEADLINE)).unwrap();
        bytes += slices(&reply.body).iter().map(Vec::len).sum::<usize>();
        if !reply.has_more {
            break;
        }
    }
    assert!(bytes > PACKETS * PACKET_BYTES, "{bytes} bytes");
}

#[test]
fn requests_wait_while_a_consumer_does_not_read_replies() {
    let harness = Harness::start();
    let mut deaf = harness.consumer();
    // Requests are small, but replies are large: without a bound, this would queue many megabytes.
    for _ in 0..50_000 {
        deaf.send("QueryServiceState", &[], None).unwrap();
    }
    barrier(&mut harness.consumer());
    // As soon as the consumer reads, the service continues: no request is lost.
    let mut replies = 0;
    while replies < 50_000 {
        let reply = deaf.next_reply(Some(DEADLINE)).unwrap();
        assert!(reply.success);
        replies += usize::from(!reply.has_more);
    }
    assert!(deaf.next_reply(Some(Duration::ZERO)).is_err());
}
