//! What goes into a buffer comes out of it: every kind of chunk, in both fill policies, with V1 and V2.

use crate::compare;
use crate::outcome::Rules::{V1, V2, V2WithoutMarks};
use crate::stage::Stage;
use esatto_tests::raw::{FIRST_CONTINUES, LAST_CONTINUES, NEEDS_PATCHING, ONE_BEING_WRITTEN, ONE_COMPLETE, moved};
use esatto_tests::wire::Proto;

const RING: u64 = 1;
const DISCARD: u64 = 2;

/// A BufferConfig.
fn buffer(size_kb: u64, policy: u64, mode: u64) -> Proto {
    let buffer = Proto::new().int(1, size_kb).int(4, policy);
    if mode == 0 { buffer } else { buffer.int(8, mode) }
}

/// Data sources `d0`, `d1`… for buffers 0, 1…
fn config(buffers: &[Proto]) -> Proto {
    let quiet = Proto::new().int(6, 60_000);
    let config = buffers.iter().fold(Proto::new(), |config, buffer| config.message(1, buffer));
    let sources = (0..buffers.len() as u64).map(|i| Proto::new().bytes(1, format!("d{i}")).int(2, i));
    sources.fold(config, |config, source| config.message(2, &Proto::new().message(1, &source))).message(20, &quiet)
}

/// Starts a session with one buffer; its id.
fn start(stage: &mut Stage<'_>, size_kb: u64, policy: u64, mode: u64) -> u64 {
    stage.offer(&["d0"]);
    stage.enable(&config(&[buffer(size_kb, policy, mode)]));
    stage.await_start().buffer
}

/// Each scenario with buffers of V1 and of V2, or of V2 alone where V1 differs by design: it keeps chunks whole, not trimmed to what is
/// in them, and a chunk that is missing holds up its sequence.
macro_rules! scenarios {
    ($($name:ident: $modes:ident),* $(,)?) => {$(
        mod $name {
            scenarios!(@ $modes $name);
        }
    )*};
    (@ v1 $name:ident) => {
        #[test]
        fn v1() {
            super::compare(super::V1, |stage| super::$name(stage, 0));
        }
    };
    (@ both $name:ident) => {
        scenarios!(@ v1 $name);
        scenarios!(@ v2 $name);
    };
    (@ v2 $name:ident) => {
        #[test]
        fn v2() {
            super::compare(super::V2, |stage| super::$name(stage, 1));
        }
    };
    (@ unmarked $name:ident) => {
        scenarios!(@ v1 $name);

        #[test]
        fn v2() {
            super::compare(super::V2WithoutMarks, |stage| super::$name(stage, 1));
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

fn several_writers(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 1024, RING, mode);
    for round in 0..20 {
        for writer in 1..5 {
            stage.commit(buffer, writer, &vec![10 * usize::from(writer); 1 + round % 3]);
        }
    }
    stage.stop_and_read();
}

fn a_ring_that_wraps(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 64, RING, mode);
    for _ in 0..100 {
        stage.commit(buffer, 1, &[500, 300, 700]);
    }
    stage.stop_and_read();
}

fn a_buffer_that_is_full(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 64, DISCARD, mode);
    for _ in 0..100 {
        stage.commit(buffer, 1, &[500, 300, 700]);
    }
    stage.stop_and_read();
}

fn several_buffers(stage: &mut Stage<'_>, mode: u64) {
    stage.offer(&["d0", "d1", "d2"]);
    stage.enable(&config(&[buffer(64, RING, mode), buffer(32, DISCARD, mode), buffer(128, RING, mode)]));
    let started: Vec<u64> = (0..3).map(|_| stage.await_start().buffer).collect();
    for round in 0..5 {
        for (writer, buffer) in (1..).zip(&started) {
            stage.commit(*buffer, writer, &[100, 100 + round]);
        }
    }
    stage.stop_and_read();
}

fn fragments(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    stage.commit(buffer, 1, &[50]);
    stage.commit_in_pieces(buffer, 1, &[4000, 4000, 1000]);
    stage.commit(buffer, 2, &[50]);
    stage.commit_in_pieces(buffer, 1, &[1, 4000]);
    stage.commit(buffer, 1, &[50]);
    stage.stop_and_read();
}

/// The middle of a packet is never committed.
fn a_chain_that_is_broken(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    stage.commit(buffer, 1, &[50]);
    let first = stage.chunk(1, &[&[0x0a; 100]]).flags(LAST_CONTINUES);
    stage.producer.commit_chunk(buffer, &first);
    let _lost = stage.chunk(1, &[&[0x0a; 100]]);
    stage.commit(buffer, 1, &[60]);
    stage.commit(buffer, 1, &[70]);
    stage.stop_and_read();
}

fn patches(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    stage.commit(buffer, 1, &[50]);
    let early = stage.commit_unpatched(buffer, 1, 40);
    stage.commit(buffer, 1, &[60]);
    stage.patch(buffer, 1, early, false);
    let twice = stage.commit_unpatched(buffer, 2, 40);
    stage.patch(buffer, 2, (twice.0, twice.1 - 8), true);
    stage.patch(buffer, 2, twice, false);
    // Of a chunk there is not.
    stage.patch(buffer, 2, (77, 0), false);
    stage.stop_and_read();
}

fn patches_that_never_come(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    stage.commit(buffer, 1, &[50]);
    let packet = stage.packet(300);
    let (head, tail) = packet.split_at(100);
    let head = stage.chunk(1, &[head]).flags(LAST_CONTINUES | NEEDS_PATCHING);
    stage.producer.commit_chunk(buffer, &head);
    let tail = stage.chunk(1, &[tail]).flags(FIRST_CONTINUES);
    stage.producer.commit_chunk(buffer, &tail);
    stage.commit(buffer, 1, &[60]);
    stage.commit(buffer, 2, &[70]);
    stage.stop_and_read();
}

fn a_writer_that_gave_up(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    let good = stage.packet(50);
    let mut chunk = stage.chunk(1, &[good]);
    chunk.payload.extend_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    chunk.payload.extend_from_slice(&[1, 2, 3]);
    chunk.count += 1;
    stage.producer.commit_chunk(buffer, &chunk);
    stage.commit(buffer, 1, &[60]);
    stage.stop();
    // Without statistics: v56 takes the marker for a violation of the ABI, too.
    stage.read();
}

fn chunks_out_of_order(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    let mut chunks = Vec::new();
    for size in [10, 20, 30, 40, 50, 60] {
        let packet = stage.packet(size);
        chunks.push(stage.chunk(1, &[packet]));
    }
    for i in [1, 0, 3, 5, 4, 2] {
        stage.producer.commit_chunk(buffer, &chunks[i]);
    }
    stage.commit(buffer, 1, &[70]);
    stage.stop_and_read();
}

fn chunks_that_come_twice(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    let packet = stage.packet(30);
    let chunk = stage.chunk(1, &[packet]);
    stage.producer.commit_chunk(buffer, &chunk);
    stage.producer.commit_chunk(buffer, &chunk);
    stage.commit(buffer, 1, &[40]);
    stage.producer.commit_chunk(buffer, &chunk);
    stage.stop_and_read();
}

/// Scraping: a chunk that is complete, one that is being written, one of a writer that nobody knows.
fn chunks_that_were_not_committed(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    for writer in 1..3 {
        let args = Proto::new().int(1, writer).int(2, buffer);
        assert!(stage.producer.call("RegisterTraceWriter", &args).success);
    }
    stage.commit(buffer, 1, &[50]);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| stage.packet(20)).collect();
    let complete = stage.chunk(1, &packets);
    stage.producer.put(1, ONE_COMPLETE, &complete);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| stage.packet(20)).collect();
    let mut open = stage.chunk(2, &packets);
    stage.producer.put(2, ONE_BEING_WRITTEN, &open);
    let packet = stage.packet(20);
    let unknown = stage.chunk(3, &[packet]);
    stage.producer.put(3, ONE_COMPLETE, &unknown);
    stage.flush();
    stage.flush();
    stage.read();
    // Committed at last, with one packet more.
    let packet = stage.packet(20);
    open.payload.extend(Proto::new().sized(&packet).0);
    open.count += 1;
    stage.producer.put(2, ONE_COMPLETE, &open);
    for page in 1..3 {
        assert!(stage.producer.commit(&Proto::new().message(1, &moved(page, 0, buffer))).success);
    }
    stage.stop();
    // Without statistics: since v58 the chunk is counted as written anew.
    stage.read();
}

/// Empty fragments, packets with fields that only the service may write, and such that are no protobuf.
fn packets_that_are_none(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 256, RING, mode);
    let good = stage.packet(30);
    let forged = Proto::new().int(8, 5).int(3, 0).0;
    let also_forged = Proto::new().bytes(36, "marker").0;
    let fragments: [&[u8]; 6] = [&[], &good, &forged, &also_forged, &[0xff; 5], &[]];
    let chunk = stage.chunk(1, &fragments);
    stage.producer.commit_chunk(buffer, &chunk);
    stage.commit(buffer, 1, &[40]);
    stage.stop();
    stage.read();
    // Counted when they are read.
    stage.stats();
}

fn reading_while_recording(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 64, RING, mode);
    stage.read();
    for _ in 0..3 {
        stage.commit(buffer, 1, &[30, 40]);
        stage.commit(buffer, 2, &[50]);
        stage.read();
    }
    // The rest of a packet comes after its beginning was met.
    let packet = stage.packet(300);
    let (head, tail) = packet.split_at(100);
    let head = stage.chunk(1, &[head]).flags(LAST_CONTINUES | NEEDS_PATCHING);
    stage.producer.commit_chunk(buffer, &head);
    stage.read();
    stage.patch(buffer, 1, (head.chunk_id, 90), false);
    let tail = stage.chunk(1, &[tail]).flags(FIRST_CONTINUES);
    stage.producer.commit_chunk(buffer, &tail);
    stage.read();
    stage.stop_and_read();
}

/// Nobody is there to be flushed; what it left in its memory is found.
fn the_end_of_a_producer(stage: &mut Stage<'_>, mode: u64) {
    let buffer = start(stage, 64, RING, mode);
    let args = Proto::new().int(1, 1).int(2, buffer);
    assert!(stage.producer.call("RegisterTraceWriter", &args).success);
    stage.commit(buffer, 1, &[30, 40]);
    let packets: Vec<Vec<u8>> = (0..3).map(|_| stage.packet(20)).collect();
    let open = stage.chunk(1, &packets);
    stage.producer.put(1, ONE_BEING_WRITTEN, &open);
    stage.leave();
    stage.disable_alone();
    stage.stats();
    stage.read();
}
