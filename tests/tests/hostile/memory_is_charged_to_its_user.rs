//! The service bounds the memory that producers cost it in addition to their packets. There is a
//! bound for all connections of a user together, and one for a buffer, by its size.

use crate::users::{ALICE, BOB, as_user, open_to_all, require_root};
use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer, moved};
use esatto_tests::wire::{Peer, Proto};
use esatto_tests::{Program, Skip, bystander, skip};

/// Buffers of connections, the used part of the bystander's buffer, and the memory that the
/// allocator keeps.
const SLACK_KB: u64 = 16 << 10;

#[track_caller]
fn assert_grew_less_than(service: &Program, before_kb: u64, max_kb: u64) {
    let grown = service.own_memory_kb().saturating_sub(before_kb);
    assert!(grown < max_kb, "{grown} KiB more are in use, {max_kb} would be too many");
}

/// A producer with a data source whose descriptor nearly fills a frame.
fn register_large(producer: &mut RawProducer, name: &str) {
    producer.register(&Proto::new().bytes(1, name).bytes(6, vec![0; 120_000]));
}

#[test]
fn descriptors_of_many_connections() {
    skip(|| {
        require_root()?;
        bystander::watch(|harness, service, _| {
            open_to_all(harness, &[&harness.producer_socket()]);
            let mut consumer = RawConsumer::connect(harness);
            consumer.enable(&raw::config(64, &["of bob"]));
            let before = service.own_memory_kb();
            // 120 MB. One user gets half of 64 MiB.
            let alice = as_user(ALICE, || {
                let mut producers: Vec<_> = (0..50).map(|_| RawProducer::connect(harness, "alice")).collect();
                for producer in &mut producers {
                    (0..20).for_each(|_| register_large(producer, "of alice"));
                }
                producers
            });
            assert_grew_less_than(service, before, (32 << 10) + SLACK_KB);
            assert!(service.log().contains("registers too many data sources"), "{}", service.log());
            let mut bob = as_user(BOB, || RawProducer::connect(harness, "bob"));
            register_large(&mut bob, "of bob");
            assert!(bob.await_start().instance > 0, "the other user has room for a large one");
            drop(alice);
            consumer.disable();
        });
        Ok::<(), Skip>(())
    });
}

#[test]
fn sequences_of_tiny_chunks() {
    const BUFFER_KB: u64 = 4 << 10;
    bystander::watch(|harness, service, port| {
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(BUFFER_KB, &["tiny"]));
        let before = service.own_memory_kb();
        let mut producers = Vec::new();
        // A record for each 16 bytes of the buffer, each of another sequence.
        for _ in 0..8 {
            let mut peer = Peer::connect_tcp(port);
            peer.bind("ProducerPort");
            let mut producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "tiny"), &[]);
            producer.offer("tiny");
            let buffer = producer.await_start().buffer;
            let mut request = Proto::new();
            for writer in 1..32_768 {
                let chunk = RawChunk { writer_id: writer, ..RawChunk::default() };
                request = request.message(1, &moved(0, 0, buffer).bytes(4, chunk.to_bytes()));
                if request.0.len() > 120_000 || writer == 32_767 {
                    assert!(producer.commit(&std::mem::replace(&mut request, Proto::new())).success);
                }
            }
            producers.push(producer);
        }
        assert_grew_less_than(service, before, 3 * BUFFER_KB + SLACK_KB);
        consumer.disable();
    });
}
