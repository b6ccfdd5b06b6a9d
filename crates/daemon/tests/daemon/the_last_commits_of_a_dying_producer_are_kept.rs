//! A process that ends does not wait for replies, but the trace still has all that it sent before.

use crate::harness::{DEADLINE, Harness, barrier, config, enable, packet, slices};

const ROUNDS: usize = 20;
const PACKETS: usize = 30;

#[test]
fn even_if_it_reads_no_replies() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    for _ in 0..ROUNDS {
        let mut producer = harness.producer();
        producer.await_start();
        for _ in 0..PACKETS {
            producer.send(&packet(500));
        }
        // It ends with a socket full of calls, and of replies that it never read.
        drop(producer);
    }
    // The flush ends when all producers have answered or have disconnected.
    assert!(consumer.call("Flush", &[], Some(DEADLINE)).unwrap().success);
    let reading = consumer.send("ReadBuffers", &[], None).unwrap();
    let mut found = 0;
    loop {
        let reply = consumer.wait_reply(reading, Some(DEADLINE)).unwrap();
        found += slices(&reply.body).iter().filter(|slice| slice.windows(500).any(|part| part == [b'x'; 500])).count();
        if !reply.has_more {
            break;
        }
    }
    assert_eq!(found, ROUNDS * PACKETS);
}
