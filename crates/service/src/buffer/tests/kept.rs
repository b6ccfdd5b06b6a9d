//! Buffers that keep unread records.

use super::*;

/// Returns a buffer with an unfinished packet `a` of writer 1, whose rest may come later.
fn waiting() -> Bench {
    let mut bench = Bench::ring();
    bench.buffer.keep_unread();
    bench.put("w1.0[a496>]");
    bench
}

#[test]
fn a_packet_that_waits_for_its_rest_outlives_many_laps() {
    let mut bench = waiting();
    for id in 0..100 {
        bench.put(&format!("w2.{id}[x1008]"));
        assert_eq!(bench.read(), "x");
        bench.buffer.assert_consistent();
    }
    bench.put("w1.1[<b496]");
    assert_eq!(bench.read(), "ab");
    let stats = bench.stats();
    assert_eq!((stats.chunks_overwritten, bench.buffer.unread_bytes()), (0, 0));
    assert!(stats.write_wrap_count > 20, "{}", stats.write_wrap_count);
}

#[test]
fn without_room_elsewhere_the_oldest_is_overwritten() {
    let mut bench = Bench::ring();
    bench.buffer.keep_unread();
    bench.put("w1.0[a2032] w1.1[b2032]");
    assert_eq!(bench.buffer.unread_bytes(), 4096);
    bench.put("w1.2[c1008]");
    bench.buffer.assert_consistent();
    assert_eq!(bench.read(), "b=65 c");
}
