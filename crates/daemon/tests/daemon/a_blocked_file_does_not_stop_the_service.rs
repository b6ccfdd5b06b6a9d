//! A trace file may be a pipe that nobody reads: only its own session waits for it.

use crate::lab::{Lab, barrier, config, enable, packet};
use esatto_schema::TraceConfig;

#[test]
fn nor_the_producers() {
    let lab = Lab::start();
    let (_unread, pipe) = rustix::pipe::pipe().unwrap();
    let mut blocked = lab.consumer();
    let streaming = TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(100), ..config() };
    blocked.send("EnableTracing", &enable(streaming), Some(pipe)).unwrap();
    barrier(&mut blocked);
    let mut producer = lab.producer();
    producer.await_start();
    // A pipe holds 64 KiB. Each of these is answered by the service, blocked file or not.
    for _ in 0..100 {
        producer.commit(&packet(20_000));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(300);
    while std::time::Instant::now() < deadline {
        barrier(&mut lab.consumer());
    }
    producer.commit(&packet(20_000));
}
