//! Many connections may each keep their own bound, and together still exceed the bound of the
//! service.

use crate::harness::{DEADLINE, Harness, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

/// The bound of a single producer is four times as large.
const BOUND: usize = 1 << 20;

#[test]
fn the_fullest_connection_is_closed() {
    let harness = Harness::start_with(|options| options.max_queued_bytes = BOUND);
    let mut consumer = harness.consumer();
    let mut calls = Vec::new();
    for id in 0..1000 {
        encode::invoke_method(&mut calls, id, 1, 99, &[], false).unwrap();
    }
    // The clients do not read. Each one stays below its bound, but all together exceed the common
    // one.
    let mut streams: Vec<_> =
        (0..4).map(|_| Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap()).collect();
    let mut sent = [0; 4];
    let mut given_up = 0;
    while given_up == 0 {
        for (stream, sent) in streams.iter_mut().zip(&mut sent) {
            match stream.send(&calls[*sent % calls.len()..], None) {
                Ok(n) => *sent += n,
                Err(Error::Disconnected) => given_up += 1,
                Err(e) => panic!("{e}"),
            }
        }
        assert!(sent.iter().sum::<usize>() < 64 << 20, "no connection is closed");
    }
    barrier(&mut consumer);
    let stalled = harness.daemon.stats().stalled_peers;
    assert!((1..=4).contains(&stalled), "{stalled}");
    barrier(&mut harness.consumer());
}

/// Each client sends only a part of a frame.
#[test]
fn unfinished_frames_count() {
    let harness = Harness::start_with(|options| options.max_queued_bytes = BOUND);
    let mut consumer = harness.consumer();
    let frame = [&100_000_u32.to_le_bytes()[..], &vec![0; 90_000]].concat();
    let connect = |_| {
        let stream = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
        assert_eq!(stream.send(&frame, None).unwrap(), frame.len());
        stream
    };
    let streams: Vec<_> = (0..16).map(connect).collect();
    // The service holds 128 KiB for each.
    while harness.daemon.stats().stalled_peers < 8 {
        barrier(&mut consumer);
    }
    barrier(&mut harness.consumer());
    let is_open = |stream: &&Stream| stream.recv(&mut [0]).unwrap().is_none();
    assert_eq!(streams.iter().filter(is_open).count(), 8, "as many as fit");
}
