//! Every kind of chunk comes out of a buffer as it went in, in both fill policies, with V1 and V2.

use crate::compare;
use crate::outcome::Rules::{V1, V2, V2WithoutMarks};
use crate::players::Players;
use esatto_tests::raw::{FIRST_CONTINUES, LAST_CONTINUES, NEEDS_PATCHING, ONE_BEING_WRITTEN, ONE_COMPLETE, moved};
use esatto_tests::wire::Proto;

const RING: u64 = 1;
const DISCARD: u64 = 2;

/// A BufferConfig.
fn buffer(size_kb: u64, policy: u64, mode: u64) -> Proto {
    let buffer = Proto::new().int(1, size_kb).int(4, policy);
    if mode == 0 { buffer } else { buffer.int(8, mode) }
}

/// Data sources `d0`, `d1`… for buffers 0, 1… Their state is never cleared: only Esatto's service
/// does so while a ring fills.
fn config(buffers: &[Proto]) -> Proto {
    let (quiet, never) = (Proto::new().int(6, 60_000), Proto::new().int(1, 0));
    let config = buffers.iter().fold(Proto::new(), |config, buffer| config.message(1, buffer));
    let sources = (0..buffers.len() as u64).map(|i| Proto::new().bytes(1, format!("d{i}")).int(2, i));
    sources
        .fold(config, |config, source| config.message(2, &Proto::new().message(1, &source)))
        .message(20, &quiet)
        .message(21, &never)
}

/// Starts a session with one buffer; its id.
fn start(players: &mut Players<'_>, size_kb: u64, policy: u64, mode: u64) -> u64 {
    players.offer(&["d0"]);
    players.enable(&config(&[buffer(size_kb, policy, mode)]));
    players.await_start().buffer
}

/// Each scenario with buffers of V1 and of V2, or of V2 alone where V1 differs by design. V1 keeps
/// whole chunks, not only their fragments, and a missing chunk holds up its sequence.
macro_rules! scenarios {
    ($($name:ident: $modes:ident),* $(,)?) => {$(
        mod $name {
            scenarios!(@ $modes $name);
        }
    )*};
    (@ v1 $name:ident) => {
        #[test]
        fn v1() {
            super::compare(super::V1, |players| super::$name(players, 0));
        }
    };
    (@ both $name:ident) => {
        scenarios!(@ v1 $name);
        scenarios!(@ v2 $name);
    };
    (@ v2 $name:ident) => {
        #[test]
        fn v2() {
            super::compare(super::V2, |players| super::$name(players, 1));
        }
    };
    (@ unmarked $name:ident) => {
        scenarios!(@ v1 $name);

        #[test]
        fn v2() {
            super::compare(super::V2WithoutMarks, |players| super::$name(players, 1));
        }
    };
}

scenarios![
    several_writers: both,
    a_ring_that_wraps: v2,
    a_buffer_that_is_full: v2,
    several_buffers: both,
    fragments: both,
    a_chain_that_is_broken: v2,
    patches: both,
    patches_that_never_come: both,
    // v56 puts the mark on the packet in front of the loss.
    a_writer_that_gave_up: unmarked,
    chunks_out_of_order: both,
    chunks_that_come_twice: both,
    chunks_that_were_not_committed: both,
    packets_that_are_none: both,
    reading_while_recording: both,
    the_end_of_a_producer: both,
];

fn several_writers(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 1024, RING, mode);
    for round in 0..20 {
        for writer in 1..5 {
            players.commit(buffer, writer, &vec![10 * usize::from(writer); 1 + round % 3]);
        }
    }
    players.stop_and_read();
}

fn a_ring_that_wraps(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 64, RING, mode);
    for _ in 0..100 {
        players.commit(buffer, 1, &[500, 300, 700]);
    }
    players.stop_and_read();
}

fn a_buffer_that_is_full(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 64, DISCARD, mode);
    for _ in 0..100 {
        players.commit(buffer, 1, &[500, 300, 700]);
    }
    players.stop_and_read();
}

fn several_buffers(players: &mut Players<'_>, mode: u64) {
    players.offer(&["d0", "d1", "d2"]);
    players.enable(&config(&[buffer(64, RING, mode), buffer(32, DISCARD, mode), buffer(128, RING, mode)]));
    let started: Vec<u64> = (0..3).map(|_| players.await_start().buffer).collect();
    for round in 0..5 {
        for (writer, buffer) in (1..).zip(&started) {
            players.commit(*buffer, writer, &[100, 100 + round]);
        }
    }
    players.stop_and_read();
}

fn fragments(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    players.commit(buffer, 1, &[50]);
    players.commit_in_pieces(buffer, 1, &[4000, 4000, 1000]);
    players.commit(buffer, 2, &[50]);
    players.commit_in_pieces(buffer, 1, &[1, 4000]);
    players.commit(buffer, 1, &[50]);
    players.stop_and_read();
}

/// The middle of a packet is never committed.
fn a_chain_that_is_broken(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    players.commit(buffer, 1, &[50]);
    let first = players.chunk(1, &[&[0x0a; 100]]).flags(LAST_CONTINUES);
    players.producer.commit_chunk(buffer, &first);
    let _lost = players.chunk(1, &[&[0x0a; 100]]);
    players.commit(buffer, 1, &[60]);
    players.commit(buffer, 1, &[70]);
    players.stop_and_read();
}

fn patches(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    players.commit(buffer, 1, &[50]);
    let early = players.commit_unpatched(buffer, 1, 40);
    players.commit(buffer, 1, &[60]);
    players.patch(buffer, 1, early, false);
    let twice = players.commit_unpatched(buffer, 2, 40);
    players.patch(buffer, 2, (twice.0, twice.1 - 8), true);
    players.patch(buffer, 2, twice, false);
    // A patch of a chunk that does not exist.
    players.patch(buffer, 2, (77, 0), false);
    players.stop_and_read();
}

fn patches_that_never_come(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    players.commit(buffer, 1, &[50]);
    let packet = players.packet(300);
    let (head, tail) = packet.split_at(100);
    let head = players.chunk(1, &[head]).flags(LAST_CONTINUES | NEEDS_PATCHING);
    players.producer.commit_chunk(buffer, &head);
    let tail = players.chunk(1, &[tail]).flags(FIRST_CONTINUES);
    players.producer.commit_chunk(buffer, &tail);
    players.commit(buffer, 1, &[60]);
    players.commit(buffer, 2, &[70]);
    players.stop_and_read();
}

fn a_writer_that_gave_up(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    let good = players.packet(50);
    let mut chunk = players.chunk(1, &[good]);
    chunk.payload.extend_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    chunk.payload.extend_from_slice(&[1, 2, 3]);
    chunk.count += 1;
    players.producer.commit_chunk(buffer, &chunk);
    players.commit(buffer, 1, &[60]);
    players.stop();
    // Without statistics: v56 also takes the marker for a violation of the ABI.
    players.read();
}

fn chunks_out_of_order(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    let mut chunks = Vec::new();
    for size in [10, 20, 30, 40, 50, 60] {
        let packet = players.packet(size);
        chunks.push(players.chunk(1, &[packet]));
    }
    for i in [1, 0, 3, 5, 4, 2] {
        players.producer.commit_chunk(buffer, &chunks[i]);
    }
    players.commit(buffer, 1, &[70]);
    players.stop_and_read();
}

fn chunks_that_come_twice(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    let packet = players.packet(30);
    let chunk = players.chunk(1, &[packet]);
    players.producer.commit_chunk(buffer, &chunk);
    players.producer.commit_chunk(buffer, &chunk);
    players.commit(buffer, 1, &[40]);
    players.producer.commit_chunk(buffer, &chunk);
    players.stop_and_read();
}

/// Scraping: a complete chunk, one that is being written, one of an unknown writer.
fn chunks_that_were_not_committed(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    for writer in 1..3 {
        let args = Proto::new().int(1, writer).int(2, buffer);
        assert!(players.producer.call("RegisterTraceWriter", &args).success);
    }
    players.commit(buffer, 1, &[50]);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| players.packet(20)).collect();
    let complete = players.chunk(1, &packets);
    players.producer.put(1, ONE_COMPLETE, &complete);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| players.packet(20)).collect();
    let mut open = players.chunk(2, &packets);
    players.producer.put(2, ONE_BEING_WRITTEN, &open);
    let packet = players.packet(20);
    let unknown = players.chunk(3, &[packet]);
    players.producer.put(3, ONE_COMPLETE, &unknown);
    players.flush();
    players.flush();
    players.read();
    // Committed at last, with one packet more.
    let packet = players.packet(20);
    open.payload.extend(Proto::new().sized(&packet).0);
    open.count += 1;
    players.producer.put(2, ONE_COMPLETE, &open);
    for page in 1..3 {
        assert!(players.producer.commit(&Proto::new().message(1, &moved(page, 0, buffer))).success);
    }
    players.stop();
    // Without statistics: since v58 the chunk is counted as written again.
    players.read();
}

/// Empty fragments, packets with fields that only the service may write, and such that are no
/// protobuf.
fn packets_that_are_none(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 256, RING, mode);
    let good = players.packet(30);
    let forged = Proto::new().int(8, 5).int(3, 0).0;
    let also_forged = Proto::new().bytes(36, "marker").0;
    let fragments: [&[u8]; 6] = [&[], &good, &forged, &also_forged, &[0xff; 5], &[]];
    let chunk = players.chunk(1, &fragments);
    players.producer.commit_chunk(buffer, &chunk);
    players.commit(buffer, 1, &[40]);
    players.stop();
    players.read();
    // Counted when they are read.
    players.stats();
}

fn reading_while_recording(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 64, RING, mode);
    players.read();
    for _ in 0..3 {
        players.commit(buffer, 1, &[30, 40]);
        players.commit(buffer, 2, &[50]);
        players.read();
    }
    // The rest of a packet comes after its beginning was met.
    let packet = players.packet(300);
    let (head, tail) = packet.split_at(100);
    let head = players.chunk(1, &[head]).flags(LAST_CONTINUES | NEEDS_PATCHING);
    players.producer.commit_chunk(buffer, &head);
    players.read();
    players.patch(buffer, 1, (head.chunk_id, 90), false);
    let tail = players.chunk(1, &[tail]).flags(FIRST_CONTINUES);
    players.producer.commit_chunk(buffer, &tail);
    players.read();
    players.stop_and_read();
}

/// No producer is left to flush; the service finds the chunks in its memory.
fn the_end_of_a_producer(players: &mut Players<'_>, mode: u64) {
    let buffer = start(players, 64, RING, mode);
    let args = Proto::new().int(1, 1).int(2, buffer);
    assert!(players.producer.call("RegisterTraceWriter", &args).success);
    players.commit(buffer, 1, &[30, 40]);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| players.packet(20)).collect();
    let open = players.chunk(1, &packets);
    players.producer.put(1, ONE_BEING_WRITTEN, &open);
    players.leave();
    players.disable_alone();
    players.stats();
    players.read();
}
