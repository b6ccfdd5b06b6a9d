//! A process that ends does not wait for answers: what it sent before is in the trace all the same.

use crate::lab::{DEADLINE, Lab, barrier, config, enable, packet, slices};

const ROUNDS: usize = 20;
const PACKETS: usize = 30;

#[test]
fn although_it_cannot_be_answered() {
    let lab = Lab::start();
    let mut consumer = lab.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    for _ in 0..ROUNDS {
        let mut producer = lab.producer();
        producer.await_start();
        for _ in 0..PACKETS {
            producer.send(&packet(500));
        }
        // Gone, with a socket full of calls, and of answers that it never read.
        drop(producer);
    }
    // The flush is over when the producers have answered or are gone.
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
