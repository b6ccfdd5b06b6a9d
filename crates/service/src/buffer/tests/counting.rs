//! Rows 108-112: what counts as read and what as overwritten.

use super::*;

#[test]
fn row_108_a_read_packet_is_not_overwritten() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a]");
    assert_eq!(bench.read_some(1), "a");
    bench.put("w2.0[x4080]");
    assert_eq!(bench.stats().chunks_overwritten, 0);
}

#[test]
fn row_109_nor_after_the_next_pass_began() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a]");
    assert_eq!(bench.read_some(1), "a");
    bench.buffer.begin_read();
    bench.put("w2.0[x4080]");
    assert_eq!(bench.stats().chunks_overwritten, 0);
}

#[test]
fn an_empty_packet_at_the_end_of_a_read_chunk_is_no_loss() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a e1]");
    assert_eq!(bench.read_some(1), "a");
    bench.put("w2.0[x4080]");
    assert_eq!(bench.stats().chunks_overwritten, 0);
    assert_eq!(bench.put("w1.1[b]").read(), "b");
}

#[test]
fn row_110_a_packet_over_three_chunks() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a496>] w1.1[<b496>] w1.2[<c496]");
    assert_eq!(bench.read(), "abc");
    bench.put("w2.0[x4080]");
    let stats = bench.stats();
    assert_eq!((stats.bytes_read, stats.chunks_overwritten, stats.bytes_overwritten), (1536, 0, 0));
}

#[test]
fn row_111_an_unpatched_packet_over_two_chunks() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a1008>] w1.1[<b1008] w2.0[x1008] w2.1[x1008]");
    assert_eq!(bench.read_some(0), "");
    bench.put("w2.2[y1008]");
    assert_eq!((bench.stats().chunks_overwritten, bench.stats().bytes_overwritten), (2, 2048));
}

#[test]
fn row_112_a_reader_that_keeps_up_loses_nothing() {
    let mut bench = Bench::ring();
    for id in 0..100 {
        bench.put(&format!("w1.{id}[a400>] w2.{id}[b300]"));
        bench.put(&format!("w1.{}[<c100]", 1000 + id));
        let read = bench.read();
        assert!(read.contains('b'));
    }
    let mut bench = Bench::ring();
    for id in 0..100 {
        assert_eq!(bench.put(&format!("w1.{id}[a400] w2.{id}[b300]")).read(), "a b");
    }
    assert_eq!(bench.stats().chunks_overwritten, 0);
}
