//! A client that shuts down its reading side has ended, as far as the service can know: it must not
//! go on sending, because connections that end are dealt with before all others.

use crate::lab::{DEADLINE, Lab, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

/// More than the kernel and the service can hold for one connection.
const MAX_SENT: usize = 16 << 20;

#[test]
fn whatever_it_sends() {
    let lab = Lab::start();
    let mut consumer = lab.consumer();
    let stream = Stream::connect(&lab.daemon.producers()[0], DEADLINE).unwrap();
    stream.shutdown_read();
    // Answers to calls that nobody knows. They are short, so that the service is slower than this
    // thread and always finds some more.
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
