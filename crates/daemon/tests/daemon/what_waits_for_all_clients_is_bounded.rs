//! Many connections that each keep to their own bound do not add up to more than the service can take.

use crate::lab::{DEADLINE, Lab, barrier};
use esatto_ipc::frame::encode;
use esatto_ipc::{Error, Stream};

/// A producer's own bound is four times as much.
const BOUND: usize = 1 << 20;

#[test]
fn and_the_fullest_one_is_given_up() {
    let lab = Lab::start_with(|options| options.max_queued_bytes = BOUND);
    let mut consumer = lab.consumer();
    let mut calls = Vec::new();
    for id in 0..1000 {
        encode::invoke_method(&mut calls, id, 1, 99, &[], false).unwrap();
    }
    // They do not read. The first ones stay below the bound, together they do not.
    let mut streams: Vec<_> = (0..4).map(|_| Stream::connect(&lab.daemon.producers()[0], DEADLINE).unwrap()).collect();
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
        assert!(sent.iter().sum::<usize>() < 64 << 20, "nobody is given up");
    }
    barrier(&mut consumer);
    let stalled = lab.daemon.stats().stalled_peers;
    assert!((1..=4).contains(&stalled), "{stalled}");
    barrier(&mut lab.consumer());
}

/// Each sends less than a frame, and keeps the service waiting for the rest.
#[test]
fn and_so_are_unfinished_frames() {
    let lab = Lab::start_with(|options| options.max_queued_bytes = BOUND);
    let mut consumer = lab.consumer();
    let frame = [&100_000_u32.to_le_bytes()[..], &vec![0; 90_000]].concat();
    let connect = |_| {
        let stream = Stream::connect(&lab.daemon.producers()[0], DEADLINE).unwrap();
        assert_eq!(stream.send(&frame, None).unwrap(), frame.len());
        stream
    };
    let streams: Vec<_> = (0..16).map(connect).collect();
    // 128 KiB are held for each.
    while lab.daemon.stats().stalled_peers < 8 {
        barrier(&mut consumer);
    }
    barrier(&mut lab.consumer());
    let is_open = |stream: &&Stream| stream.recv(&mut [0]).unwrap().is_none();
    assert_eq!(streams.iter().filter(is_open).count(), 8, "as many as fit");
}
