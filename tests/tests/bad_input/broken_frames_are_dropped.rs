//! Framing: garbage, oversized and half frames on either socket.

use esatto_tests::bystander::{self, Logged};
use esatto_tests::wire::{MAX_PAYLOAD, Peer, Proto};
use esatto_tests::{Harness, skip};
use std::path::PathBuf;

fn sockets(harness: &Harness) -> [PathBuf; 2] {
    [harness.producer_socket(), harness.consumer_socket()]
}

#[test]
fn a_frame_that_is_too_long_closes_the_connection() {
    skip(|| {
        bystander::attack(|harness, _| {
            for socket in sockets(harness) {
                for length in [MAX_PAYLOAD + 1, 1 << 30, u32::MAX] {
                    let mut peer = Peer::connect(&socket);
                    peer.send(&length.to_le_bytes());
                    assert!(peer.is_closed(), "a frame of {length} bytes");
                }
            }
            Logged::Yes
        })
    });
}

#[test]
fn half_frames_leave_nothing_behind() {
    skip(|| {
        bystander::attack(|harness, service| {
            let before = service.descriptors();
            for socket in sockets(harness) {
                for length in 0..32 {
                    let frame = Proto::new().int(2, 1).message(3, &Proto::new().bytes(1, "ProducerPort")).frame();
                    let mut peer = Peer::connect(&socket);
                    peer.send(&frame[..length.min(frame.len() - 1)]);
                }
                // Announced, but never sent.
                let mut peer = Peer::connect(&socket);
                peer.send(&MAX_PAYLOAD.to_le_bytes());
            }
            service.wait_for_descriptors(before);
            Logged::No
        })
    });
}

#[test]
fn random_bytes_do_no_harm() {
    skip(|| {
        bystander::attack(|harness, service| {
            let before = service.descriptors();
            let mut random = bystander::Random::new(2);
            for round in 0..100 {
                for socket in sockets(harness) {
                    let mut bytes: Vec<u8> = (0..2000).map(|_| random.byte()).collect();
                    if round % 2 == 0 {
                        // As a frame that looks like one from outside.
                        bytes.splice(..4, 1996_u32.to_le_bytes());
                    }
                    Peer::connect(&socket).send(&bytes);
                }
            }
            service.wait_for_descriptors(before);
            Logged::Yes
        })
    });
}

#[test]
fn silent_connections_do_not_keep_other_clients_out() {
    skip(|| {
        bystander::attack(|harness, _| {
            let silent: Vec<Peer> =
                sockets(harness).iter().flat_map(|socket| [socket; 100]).map(|s| Peer::connect(s)).collect();
            let mut peer = Peer::consumer(harness);
            assert_eq!(peer.state().sessions_started, 1);
            drop(silent);
            Logged::No
        })
    });
}
