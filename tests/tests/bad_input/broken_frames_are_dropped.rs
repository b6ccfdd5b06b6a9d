//! Framing: garbage, oversized and half frames on either socket.

use esatto_tests::bystander::{self, Logged};
use esatto_tests::wire::{MAX_PAYLOAD, Peer, Proto};
use esatto_tests::{Lab, skip};
use std::path::PathBuf;

fn sockets(lab: &Lab) -> [PathBuf; 2] {
    [lab.producer_socket(), lab.consumer_socket()]
}

/// A bind that any service answers, to see that a connection is still good.
fn assert_answers(peer: &mut Peer) {
    peer.send(&Proto::new().int(2, 77).message(3, &Proto::new().bytes(1, "NoSuchService")).frame());
    assert_eq!(peer.read().expect("the connection stands").request_id, 77);
}

#[test]
fn a_frame_that_is_no_protobuf_is_passed_over() {
    skip(|| {
        bystander::attack(|lab, _| {
            for socket in sockets(lab) {
                let mut peer = Peer::connect(&socket);
                peer.send(&[&5_u32.to_le_bytes()[..], &[0xff; 5]].concat());
                peer.send(&0_u32.to_le_bytes());
                assert_answers(&mut peer);
            }
            Logged::No
        })
    });
}

#[test]
fn a_frame_that_is_too_long_closes_the_connection() {
    skip(|| {
        bystander::attack(|lab, _| {
            for socket in sockets(lab) {
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
fn the_longest_frame_is_read() {
    skip(|| {
        bystander::attack(|lab, _| {
            for socket in sockets(lab) {
                let mut peer = Peer::connect(&socket);
                // Field 1 is padding for tests; its length takes 3 bytes.
                let padding = Proto::new().bytes(1, vec![0; MAX_PAYLOAD as usize - 4]);
                assert_eq!(padding.0.len(), MAX_PAYLOAD as usize);
                peer.send(&padding.frame());
                let reply = peer.read().expect("the connection stands");
                assert!(reply.error.is_some(), "no request is in it: {reply:?}");
                assert_answers(&mut peer);
            }
            Logged::No
        })
    });
}

#[test]
fn a_frame_that_comes_byte_by_byte_is_read() {
    skip(|| {
        bystander::attack(|lab, _| {
            for socket in sockets(lab) {
                let mut peer = Peer::connect(&socket);
                let frame = Proto::new().int(2, 5).message(3, &Proto::new().bytes(1, "NoSuchService")).frame();
                frame.iter().for_each(|byte| peer.send(&[*byte]));
                assert_eq!(peer.read().expect("the connection stands").request_id, 5);
            }
            Logged::No
        })
    });
}

#[test]
fn half_frames_leave_nothing_behind() {
    skip(|| {
        bystander::attack(|lab, service| {
            let before = service.descriptors();
            for socket in sockets(lab) {
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
        bystander::attack(|lab, service| {
            let before = service.descriptors();
            let mut random = bystander::Random::new(2);
            for round in 0..100 {
                for socket in sockets(lab) {
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
fn a_client_that_never_reads_is_cut_off() {
    skip(|| {
        bystander::attack(|lab, service| {
            let before = service.descriptors();
            let mut peer = Peer::producer(lab);
            let (_, call) = peer.raw_call_frame(1, 99, &[]);
            let stopped = peer.flood(&call.repeat(1000), 64 << 20);
            assert!(stopped, "the service takes 64 MB of calls whose answers nobody reads");
            drop(peer);
            service.wait_for_descriptors(before);
            Logged::No
        })
    });
}

#[test]
fn connections_that_say_nothing_do_not_keep_others_out() {
    skip(|| {
        bystander::attack(|lab, _| {
            let silent: Vec<Peer> =
                sockets(lab).iter().flat_map(|socket| [socket; 100]).map(|s| Peer::connect(s)).collect();
            let mut peer = Peer::consumer(lab);
            assert_eq!(peer.state().sessions_started, 1);
            drop(silent);
            Logged::No
        })
    });
}
