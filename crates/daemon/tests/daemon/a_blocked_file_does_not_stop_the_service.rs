//! If a trace file is an unread pipe, only its own session waits for it.

use crate::harness::{Harness, barrier, config, enable, packet};
use esatto_schema::TraceConfig;

#[test]
fn producers_and_consumers_are_served() {
    let harness = Harness::start();
    let (_unread, pipe) = rustix::pipe::pipe().unwrap();
    let mut blocked = harness.consumer();
    let streaming = TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(100), ..config() };
    blocked.send("EnableTracing", &enable(streaming), Some(pipe)).unwrap();
    barrier(&mut blocked);
    let mut producer = harness.producer();
    producer.await_start();
    // A pipe holds 64 KiB. The service answers each of these commits, even while the file is
    // blocked.
    for _ in 0..100 {
        producer.commit(&packet(20_000));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(300);
    while std::time::Instant::now() < deadline {
        barrier(&mut harness.consumer());
    }
    producer.commit(&packet(20_000));
}
