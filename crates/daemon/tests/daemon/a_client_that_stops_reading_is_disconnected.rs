//! If a client shuts down its reading side, the service treats it as ended. It must not send more,
//! because the loop handles ending connections before all others.

use crate::harness::{DEADLINE, Harness, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

/// More than the kernel and the service can hold for one connection.
const MAX_SENT: usize = 16 << 20;

#[test]
fn while_it_still_sends() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    let stream = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
    stream.shutdown_read();
    // Replies to unknown calls. They are short, so that the service is slower than this thread and
    // always finds more of them.
    let mut calls = Vec::new();
    for id in 0..10_000 {
        encode::invoke_method(&mut calls, id, 1, 99, &[], false).unwrap();
    }
    let mut sent = 0;
    loop {
        match stream.send(&calls[sent % calls.len()..], None) {
            Ok(0) => std::thread::yield_now(),
            Ok(n) => sent += n,
            Err(Error::Disconnected) => break,
            Err(e) => panic!("{e}"),
        }
        assert!(sent < MAX_SENT, "the service takes calls of a client that takes no answers");
    }
    barrier(&mut consumer);
}
