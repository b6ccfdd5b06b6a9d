//! What is queued for a producer is bounded, and beyond the bound it is given up.

use crate::lab::{DEADLINE, Lab, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

#[test]
fn and_nobody_else_notices() {
    let lab = Lab::start();
    let mut consumer = lab.consumer();
    let stream = Stream::connect(&lab.daemon.producers()[0], DEADLINE).unwrap();
    let mut calls = Vec::new();
    for id in 0..1000 {
        encode::invoke_method(&mut calls, id, 1, 99, &[], false).unwrap();
    }
    let mut sent = 0;
    let disconnected = loop {
        match stream.send(&calls[sent % calls.len()..], None) {
            // The service is busy: it reads all the same.
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
    assert_eq!(lab.daemon.stats().stalled_peers, 1);
}
