//! Rows 93-103: input that no writer makes.

use super::*;

#[test]
fn row_093_a_payload_of_one_zero() {
    let mut bench = Bench::ring();
    bench.put("w9.0[y]");
    bench.raw(1, 0, 1, &[0]);
    bench.put("w9.1[z]");
    assert_eq!(bench.read(), "y z");
    assert_eq!(bench.stats().abi_violations, 0);
}

#[test]
fn row_094_counts_that_lie() {
    let mut bench = Bench::ring();
    bench.put("w9.0[y]");
    bench.raw(2, 0, 3, &[2, b'a', b'a']);
    bench.raw(3, 0, 1, &[]);
    bench.put("w9.1[z]");
    assert_eq!(bench.read(), "a y z");
    assert_eq!(bench.stats().abi_violations, 2);
    bench.put("w2.1[b]");
    assert_eq!(bench.read(), "b=5", "the next packet says that the chunk was corrupted");
}

#[test]
fn row_095_an_empty_packet_in_front_of_garbage() {
    let mut bench = Bench::ring();
    bench.put("w9.0[y]");
    bench.raw(4, 0, 3, &[0, 0xff, 0xff, 0xff]);
    bench.put("w9.1[z] w4.1[b]");
    assert_eq!(bench.read(), "b=5 y z");
    assert_eq!(bench.stats().abi_violations, 1);
}

#[test]
fn row_096_a_truncated_size_at_the_end() {
    let mut bench = Bench::ring();
    let mut payload = vec![0xed, 0x1f];
    payload.resize(2 + 4077, b'a');
    payload.push(0x82);
    payload.truncate(4080);
    bench.raw(1, 0, 2, &payload);
    assert_eq!(bench.read(), "a");
}

#[test]
fn row_097_broken_sizes() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a]");
    bench.raw(1, 1, 1, &[4, b'x', b'x', b'x']);
    bench.raw(1, 2, 1, &[0xff, 0xff, 0xff, 0x7f]);
    let mut long = vec![0xff; 111];
    long.push(0x7f);
    bench.raw(1, 3, 1, &long);
    bench.put("w1.4[b]");
    assert_eq!(bench.read(), "a b=133");
}

#[test]
fn row_098_a_chunk_of_ones_only() {
    let mut bench = Bench::new(256);
    for id in 0..3 {
        bench.raw(1, id, 1023, &vec![0xff; 65535]);
    }
    bench.raw(1, 3, 1023, &vec![0xff; 65536]);
    assert_eq!(bench.read(), "");
}

#[test]
fn row_099_an_empty_fragment_in_the_middle_of_a_packet() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a>] w1.1[<e1>] w1.2[<c]");
    assert_eq!(bench.read(), "ac");
}

#[test]
fn row_100_an_empty_fragment_at_the_beginning_of_a_packet() {
    let mut bench = Bench::ring();
    bench.put("w1.0[x e1>] w1.1[<c]");
    assert_eq!(bench.read(), "x c");
}

#[test]
fn row_101_a_shorter_repetition_is_ignored() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b] w1.0[x10]");
    assert_eq!(bench.read(), "a b");
    bench.put("w1.0[x10] w1.1[c]");
    assert_eq!(bench.read(), "c");
}

#[test]
fn row_102_other_boundaries_after_reading() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a32 b32]").read_some(1), "a");
    bench.put("w1.0[x50 y14] w1.1[c]");
    assert_eq!(bench.read(), "b c");
}

#[test]
fn row_103_writer_zero() {
    let mut bench = Bench::ring();
    bench.put("w0.0[a] w0.4294967295[b] w1.0[c]").read();
    bench.buffer.assert_consistent();
    assert_eq!(bench.put("w1.1[d]").read(), "d");
}

#[test]
fn patches_may_break_sizes_but_nothing_else() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b] w2.0[z]");
    assert!(bench.patch(1, 0, 0, b"\xff\xff\xff\xff", false));
    bench.put("w1.1[c]");
    assert_eq!(bench.read(), "c=5 z");
}
