//! A peer passes TCP sockets with unsent data and `SO_LINGER`. It keeps none of them, so closing
//! them takes an hour.

use crate::descriptors::{Lingering, borrowed};
use esatto_tests::bystander::{watch, watch_behind_relay};
use esatto_tests::raw;
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Implementation, Program, Signal};
use std::path::Path;

/// A frame that is no request.
fn nonsense() -> Vec<u8> {
    Proto::new().int(2, 1).frame()
}

/// Sends bytes and descriptors, of which no copy stays here.
fn pass(peer: &mut Peer, bytes: &[u8], lingering: &mut Lingering, count: usize) {
    peer.send_with_fds(bytes, &borrowed(&lingering.sockets(count)));
}

/// Stops a program while something is sent to it, so that only the program has the descriptors when
/// it finds them.
fn unseen<T>(program: &Program, send: impl FnOnce() -> T) -> T {
    program.signal(Signal::STOP);
    let result = send();
    program.signal(Signal::CONT);
    result
}

/// Passes descriptors in all ways that any socket has, for any service. Returns the connections
/// that stay open.
fn pass_in_all_ways(program: &Program, socket: &Path, lingering: &mut Lingering) -> Vec<Peer> {
    unseen(program, || {
        // With frames that want none, so that each takes the place of the one before.
        let mut flood = Peer::connect(socket);
        for _ in 0..3 {
            pass(&mut flood, &nonsense(), lingering, 1);
        }
        // Two at once, and more than are allowed.
        let mut several = Peer::connect(socket);
        pass(&mut several, &nonsense(), lingering, 2);
        pass(&mut several, &nonsense(), lingering, 16);
        // With half a frame, by a peer that goes away.
        pass(&mut Peer::connect(socket), &[9, 0, 0, 0, 1], lingering, 1);
        // After a frame that ends the connection: no program receives them.
        let mut broken = Peer::connect(socket);
        broken.send(&u32::MAX.to_le_bytes());
        for _ in 0..3 {
            pass(&mut broken, &nonsense(), lingering, 1);
        }
        vec![flood, several, broken]
    })
}

fn is_served(socket: &Path, port: &str) {
    Peer::connect(socket).bind(port);
}

#[test]
fn at_the_sockets_of_the_service() {
    watch(|harness, service, _| {
        let before = service.descriptors();
        let mut lingering = Lingering::new();
        for (socket, port) in [(harness.producer_socket(), "ProducerPort"), (harness.consumer_socket(), "ConsumerPort")]
        {
            let peers = pass_in_all_ways(service, &socket, &mut lingering);
            is_served(&socket, port);
            drop(peers);
            is_served(&socket, port);
        }
        service.wait_for_descriptors(before);
    });
}

#[test]
fn as_shared_memory() {
    watch(|harness, service, _| {
        let before = service.descriptors();
        let mut lingering = Lingering::new();
        let mut producer = Peer::producer(harness);
        let introduction = Proto::new().int(1, 4096).bytes(3, "offer").int(6, 1);
        let (hello, frame) = producer.call_frame("InitializeConnection", &introduction);
        unseen(service, || pass(&mut producer, &frame, &mut lingering, 1));
        let answer = producer.reply_to(hello);
        assert!(answer.success && wire::int(&answer.body, 1) == 0, "it is not adopted: {answer:?}");
        is_served(&harness.producer_socket(), "ProducerPort");
        drop(producer);
        service.wait_for_descriptors(before);
    });
}

#[test]
fn as_trace_files() {
    watch(|harness, service, _| {
        let before = service.descriptors();
        let mut lingering = Lingering::new();
        // One after the other, more than there can be files at the same time.
        for _ in 0..70 {
            let mut consumer = Peer::consumer(harness);
            let config = raw::config(64, &[]).int(8, 1);
            let (_, frame) = consumer.call_frame("EnableTracing", &Proto::new().message(1, &config));
            unseen(service, || pass(&mut consumer, &frame, &mut lingering, 1));
            assert!(consumer.call("DisableTracing", &Proto::new()).success);
        }
        is_served(&harness.consumer_socket(), "ConsumerPort");
        // Files are written and closed by threads of their own, which wait as long as it takes.
        drop(lingering);
        service.wait_for_descriptors(before);
    });
}

#[test]
fn at_the_socket_of_the_relay() {
    watch_behind_relay(|_: &Harness, relay: &mut Program, socket: &Path| {
        let before = relay.descriptors();
        let mut lingering = Lingering::new();
        let peers = pass_in_all_ways(relay, socket, &mut lingering);
        is_served(socket, "ProducerPort");
        drop(peers);
        is_served(socket, "ProducerPort");
        relay.wait_for_descriptors(before);
    });
}

/// Ends a program that finds such descriptors, some of them on connections that were never
/// accepted.
fn assert_ends(program: &mut Program, sockets: &[&Path]) {
    let mut lingering = Lingering::new();
    let peers: Vec<_> = unseen(program, || {
        let all = sockets.iter().flat_map(|socket| pass_many(socket, &mut lingering)).collect();
        program.signal(Signal::TERM);
        all
    });
    program.wait_ok();
    drop(peers);
}

/// More connections with descriptors than are accepted in one go.
fn pass_many(socket: &Path, lingering: &mut Lingering) -> Vec<Peer> {
    let connect = |number| {
        let mut peer = Peer::connect(socket);
        if number % 16 == 0 {
            pass(&mut peer, &nonsense(), lingering, 1);
        }
        peer
    };
    (0..96).map(connect).collect()
}

#[test]
fn at_the_end_of_the_service() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    assert_ends(&mut service, &[&harness.producer_socket(), &harness.consumer_socket()]);
}

#[test]
fn at_the_end_of_the_relay() {
    let harness = Harness::new();
    let (_service, port) = harness.service_with_tcp(Implementation::Ours, |_| ());
    let socket = harness.path("r.sock");
    let mut relay = harness.relay(port, &socket);
    assert_ends(&mut relay, &[&socket]);
}
