//! The order of chunk ids, and which sequences wait for what, is up to producers. None of it makes
//! the service slow, or other traces incomplete. `crates/service/src/buffer/tests/work.rs` counts
//! the work.

use esatto_tests::bystander;
use esatto_tests::raw::{self, LAST_CONTINUES, NEEDS_PATCHING, RawChunk, RawConsumer, RawProducer, moved};
use esatto_tests::wire::{self, Peer, Proto};

/// A producer without shared memory, and the buffer of its session.
fn start(harness: &esatto_tests::Harness, port: u16) -> (RawProducer, RawConsumer, u64) {
    let mut peer = Peer::connect_tcp(port);
    peer.bind("ProducerPort");
    let mut producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "attacker"), &[]);
    producer.offer("attacker");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64 << 10, &["attacker"]).int(43, 1));
    let buffer = producer.await_start().buffer;
    (producer, consumer, buffer)
}

/// Commits chunks, as many in a frame as fit.
fn commit_all(producer: &mut RawProducer, buffer: u64, chunks: impl Iterator<Item = RawChunk>) {
    let mut request = Proto::new();
    for chunk in chunks {
        request = request.message(1, &moved(0, 0, buffer).bytes(4, chunk.to_bytes()));
        if request.0.len() > 120_000 {
            assert!(producer.commit(&std::mem::replace(&mut request, Proto::new())).success);
        }
    }
    assert!(producer.commit(&request).success);
}

#[test]
fn ids_may_all_land_in_the_middle() {
    const CHUNKS: u32 = 100_000;
    bystander::watch(|harness, _, port| {
        let (mut producer, mut consumer, buffer) = start(harness, port);
        // 0, 99999, 1, 99998, …: each goes into the middle of the earlier ones.
        let id = |i: u32| if i % 2 == 0 { i / 2 } else { CHUNKS - 1 - i / 2 };
        commit_all(&mut producer, buffer, (0..CHUNKS).map(|i| RawChunk::new(1, id(i), &[[0x40, 1]])));
        let packets = consumer.read();
        let count = packets.iter().filter(|packet| wire::int(packet, 8) == 1).count();
        assert_eq!(count, CHUNKS as usize);
        let lost = packets.iter().skip(1).filter(|packet| wire::int(packet, 10) > 1 && wire::int(packet, 42) & !1 != 0);
        assert_eq!(lost.count(), 0, "packets that say that something was lost");
    });
}

#[test]
fn writers_that_wait_for_patches_do_not_hold_up_a_read() {
    const WAITING: u16 = 30_000;
    const PACKETS: u64 = 2000;
    bystander::watch(|harness, _, port| {
        let (mut producer, mut consumer, buffer) = start(harness, port);
        let waiting =
            (2..=WAITING).map(|writer| RawChunk::new(writer, 0, &[[0x40, 1]]).flags(LAST_CONTINUES | NEEDS_PATCHING));
        commit_all(&mut producer, buffer, waiting);
        // More than a batch, in several of them.
        let text = "x".repeat(200);
        let packets = (0..PACKETS).map(|number| RawChunk::new(1, number as u32, &[raw::packet(number, &text)]));
        commit_all(&mut producer, buffer, packets);
        let read = consumer.read_texts();
        assert!(read.iter().map(|(number, _)| *number).eq(0..PACKETS), "{} packets", read.len());
    });
}

#[test]
fn packets_that_are_refused_do_not_hold_up_a_read() {
    const REFUSED: u32 = 200_000;
    bystander::watch(|harness, _, port| {
        let (mut producer, mut consumer, buffer) = start(harness, port);
        // Field 3 is the service's.
        commit_all(&mut producer, buffer, (0..REFUSED / 500).map(|id| RawChunk::new(1, id, &[[0x18, 0]; 500])));
        let last = RawChunk::new(1, REFUSED / 500, &[raw::packet(7, "good")]);
        commit_all(&mut producer, buffer, std::iter::once(last));
        assert_eq!(consumer.read_texts(), [(7, "good".to_owned())]);
        assert_eq!(wire::int(&consumer.stats(), 10), u64::from(REFUSED), "invalid_packets");
    });
}
