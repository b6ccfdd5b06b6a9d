//! A consumer that reads slowly, or stops for a while, holds nobody up and loses nothing.

use crate::lab::{DEADLINE, Lab, barrier, config, enable, packet, slices};
use std::time::Duration;

/// More than all buffers between the service and the consumer hold together.
const PACKETS: usize = 400;
const PACKET_BYTES: usize = 20_000;

#[test]
fn and_holds_nobody_up() {
    let lab = Lab::start();
    let mut slow = lab.consumer();
    slow.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut slow);
    let mut producer = lab.producer();
    producer.await_start();
    for _ in 0..PACKETS {
        producer.commit(&packet(PACKET_BYTES));
    }

    let reading = slow.send("ReadBuffers", &[], None).unwrap();
    // It does not read. Everybody else is served: this takes a fresh connection and a full round.
    for _ in 0..3 {
        barrier(&mut lab.consumer());
        producer.commit(&packet(10));
    }
    assert_eq!(lab.daemon.stats().stalled_peers, 0);

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
fn requests_of_one_that_does_not_read_its_replies_are_not_handled_any_more() {
    let lab = Lab::start();
    let mut deaf = lab.consumer();
    // Requests are small, replies are not: left alone, this would queue many megabytes.
    for _ in 0..50_000 {
        deaf.send("QueryServiceState", &[], None).unwrap();
    }
    barrier(&mut lab.consumer());
    // As soon as it reads, it gets on: not one of its requests is lost.
    let mut replies = 0;
    while replies < 50_000 {
        let reply = deaf.next_reply(Some(DEADLINE)).unwrap();
        assert!(reply.success);
        replies += usize::from(!reply.has_more);
    }
    assert!(deaf.next_reply(Some(Duration::ZERO)).is_err());
}
