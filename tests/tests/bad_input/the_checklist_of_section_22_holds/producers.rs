//! Rows 13 to 25: identities, memory and commits of producers.

use std::os::fd::AsFd;

use esatto_tests::Harness;
use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer, moved, packet};
use esatto_tests::wire::{self, Peer, Proto};
use rustix::fs::SealFlags;

use super::session;
use crate::attacker::{ALL_MACHINES, SEALS, memory, offer};

fn identity(pid: u64, uid: u64, hint: &str) -> Vec<u8> {
    Proto::new().message(8, &Proto::new().int(1, pid).int(2, uid).bytes(3, hint)).frame()
}

/// Uid, pid and machine id of the only producer, as the service reports them.
fn introduced(harness: &Harness) -> (i32, i32, u64) {
    let state = Peer::consumer(harness).call("QueryServiceState", &Proto::new()).body;
    let state = wire::last(&state, 1).expect("a state");
    let [producer] = wire::all(state, 1)[..] else { panic!("one producer") };
    (wire::int(producer, 3) as i32, wire::int(producer, 5) as i32, wire::int(producer, 7))
}

pub(super) fn row_22_13_an_identity_on_a_unix_socket(harness: &Harness, _: u16) {
    let mut peer = Peer::connect(&harness.producer_socket());
    peer.send(&identity(1, 4711, "hint"));
    peer.bind("ProducerPort");
    let _producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "local"), &[]);
    let own = (rustix::process::getuid().as_raw() as i32, std::process::id() as i32, 0);
    assert_eq!(introduced(harness), own);
}

fn remote(port: u16, before: &[u8]) -> RawProducer {
    let mut peer = Peer::connect_tcp(port);
    peer.send(before);
    peer.bind("ProducerPort");
    RawProducer::introduce(peer, &Proto::new().bytes(3, "remote"), &[])
}

pub(super) fn row_22_14_two_identities_over_tcp(harness: &Harness, port: u16) {
    let _producer = remote(port, &[identity(7, 4711, "a"), identity(8, 4712, "b")].concat());
    let (uid, pid, _) = introduced(harness);
    assert_eq!((uid, pid), (4711, 7));
}

pub(super) fn row_22_15_tcp_without_an_identity(harness: &Harness, port: u16) {
    let mut producer = remote(port, &[]);
    assert_eq!(wire::int(&producer.answer, 3), 1, "use_shmem_emulation");
    let (uid, _, machine) = introduced(harness);
    assert_eq!((uid, machine), (0, 0));
    producer.offer("remote");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["remote"]));
    let buffer = producer.await_start().buffer;
    assert!(!producer.has_memory());
    producer.commit_data(buffer, &RawChunk::new(1, 0, &[packet(0, "remote")]));
    let packets = consumer.read();
    let own = packets.iter().find(|packet| raw::text_of(packet).is_some()).expect("the packet");
    assert!(!wire::fields(own).iter().any(|(field, _)| *field == 79), "nobody knows its pid");
}

pub(super) fn row_22_16_the_hash_of_a_machine_hint(harness: &Harness, port: u16) {
    let mut producer = remote(port, &identity(7, 4711, "5224bdf8-ec6a-4015-af44-94aca6fba747"));
    producer.offer("remote");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["remote"]).int(ALL_MACHINES, 1));
    let buffer = producer.await_start().buffer;
    producer.commit_data(buffer, &RawChunk::new(1, 0, &[packet(0, "remote")]));
    let packets = consumer.read();
    let own = packets.iter().find(|packet| raw::text_of(packet).is_some()).expect("the packet");
    assert_eq!(wire::int(own, 98), 1_011_363_979);
}

pub(super) fn row_22_17_initialize_connection_twice(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "first");
    assert!(!producer.peer.call("InitializeConnection", &Proto::new().bytes(3, "second")).success);
    assert_eq!(harness.state().producers, ["first"]);
    assert!(producer.peer.call("Sync", &Proto::new()).success);
}

pub(super) fn row_22_18_offered_memory_of_bad_sizes(harness: &Harness, _: u16) {
    for (page_size, size) in [(0, 16384), (12288, 12288 * 4), (65536, 1 << 18), (4096, 40 << 20)] {
        assert!(!offer(harness, page_size, memory(size, SEALS).as_fd()).1, "{size} bytes in pages of {page_size}");
    }
}

pub(super) fn row_22_19_offered_memory_that_is_good(harness: &Harness, _: u16) {
    let fd = memory(16384, SEALS);
    let mut peer = Peer::producer(harness);
    let introduction = Proto::new().int(1, 4096).bytes(3, "offer").int(6, 1);
    let (id, frame) = peer.call_frame("InitializeConnection", &introduction);
    peer.send_with_fds(&frame, &[fd.as_fd()]);
    assert_eq!(wire::int(&peer.reply_to(id).body, 1), 1, "adopted");
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let command = peer.reply_to(commands);
    assert_eq!(command.body, [0x1a, 0], "an empty setup_tracing");
    assert!(peer.take_descriptor().is_none());
}

pub(super) fn row_22_20_offered_memory_without_seals(harness: &Harness, _: u16) {
    assert!(!offer(harness, 4096, memory(16384, SealFlags::empty()).as_fd()).1);
}

pub(super) fn row_22_21_get_async_command_late(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, "late")).success);
    let source = Proto::new().bytes(1, "late");
    assert!(peer.call("RegisterDataSource", &Proto::new().message(1, &source)).success);
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["late"]));
    assert!(consumer.peer.call("QueryCapabilities", &Proto::new()).success, "it is enabled");
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let first = peer.reply_to(commands);
    assert!(wire::last(&first.body, 3).is_some(), "setup_tracing");
    assert!(peer.take_descriptor().is_some());
    // Only the answer to another call: setup and start were lost.
    let (sync, frame) = peer.call_frame("Sync", &Proto::new());
    peer.send(&frame);
    assert_eq!(peer.read().expect("an answer").request_id, sync);
}

pub(super) fn row_22_22_two_get_async_command(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "twice");
    let (second, frame) = producer.peer.call_frame("GetAsyncCommand", &Proto::new());
    producer.peer.send(&frame);
    let reply = producer.peer.read().expect("the first is answered");
    assert!(reply.request_id != second && !reply.success && !reply.has_more, "{reply:?}");
    producer.offer("twice");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["twice"]));
    let command = producer.peer.reply_to(second);
    assert!(command.success && command.has_more && wire::last(&command.body, 3).is_some());
}

pub(super) fn row_22_23_a_commit_before_setup_tracing(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "early");
    let request = Proto::new().message(1, &moved(0, 0, 1)).int(3, 1);
    assert!(!producer.commit(&request).success);
}

pub(super) fn row_22_24_a_commit_before_register_trace_writer(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, buffer) = session(harness);
    producer.commit_chunk(buffer, &RawChunk::new(1, 0, &[packet(0, "before")]));
    assert!(producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
    producer.commit_chunk(buffer, &RawChunk::new(1, 1, &[packet(1, "after")]));
    assert_eq!(consumer.read_texts(), [(0, "before".to_owned()), (1, "after".to_owned())]);
}

pub(super) fn row_22_25_one_acknowledgement_of_three_flushes(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, _) = session(harness);
    let calls = [0; 3].map(|_| consumer.flush(0));
    let ids = [0; 3].map(|_| producer.await_flush());
    assert!(ids.is_sorted());
    producer.acknowledge(ids[1]);
    for call in &calls[..2] {
        let reply = consumer.peer.read().expect("a reply");
        assert!(reply.success && reply.request_id == *call, "{reply:?}");
    }
    // The third waits.
    assert!(consumer.peer.call("QueryCapabilities", &Proto::new()).success);
    producer.acknowledge(ids[2]);
    assert!(consumer.peer.reply_to(calls[2]).success);
}
