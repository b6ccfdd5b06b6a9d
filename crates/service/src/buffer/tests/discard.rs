//! Rows 104-107: the policy DISCARD.

use super::*;

#[test]
fn row_104_reading_makes_no_room() {
    let mut bench = Bench::discard();
    bench.put("w1.0[a80] w1.1[b3984]");
    assert_eq!(bench.read_some(1), "a");
    bench.put("w1.2[c32] w1.3[d32]");
    assert_eq!(bench.read(), "b", "V1 wraps behind the reader");
    bench.put("w1.4[e] w1.5[]");
    assert_eq!(bench.read(), "");
    let stats = bench.stats();
    assert_eq!((stats.chunks_discarded, stats.write_wrap_count), (4, 0));
}

#[test]
fn row_105_a_chunk_that_does_not_fit_closes_the_buffer() {
    let mut bench = Bench::discard();
    bench.put("w1.0[a16] w1.1[b3984]");
    assert_eq!(bench.read_some(1), "a");
    bench.put("w1.2[c4] w1.3[d32]");
    assert_eq!(bench.read(), "b c");
    bench.put("w1.4[]");
    assert_eq!(bench.stats().chunks_discarded, 2);
}

#[test]
fn row_106_filled_exactly() {
    let mut bench = Bench::discard();
    bench.record("w1.0", 2048).record("w1.1", 2048).record("w1.2", 32);
    assert_eq!(bench.read(), "z z");
    assert_eq!(bench.stats().chunks_discarded, 1);
}

#[test]
fn row_107_a_packet_whose_end_was_refused() {
    let mut bench = Bench::discard();
    bench.put("w2.0[x] w1.0[a b2000>] w2.1[y] w1.1[<c2000 d] w2.2[z]");
    assert_eq!(bench.read(), "a x y");
}

#[test]
fn patches_are_accepted_when_it_is_closed() {
    let mut bench = Bench::discard();
    bench.put("w1.0![a4000] w1.1[b1000]");
    bench.unblock(1, 0);
    assert_eq!(bench.read(), "a");
}
