//! Rows 21-36: packets in several chunks.

use super::*;

#[test]
fn row_021_orphans_at_the_start_and_open_ends() {
    let mut bench = Bench::ring();
    bench.put("w1.0[<a10 b20 c30 d10>] w1.1[<e20 f30]");
    assert_eq!(bench.read(), "b=9 c de f");
}

#[test]
fn row_022_a_packet_waits_for_its_end() {
    let mut bench = Bench::ring();
    bench.put("w1.0[<a2] w1.1[b2>]");
    assert_eq!(bench.read(), "");
    bench.put("w1.2[<c2]");
    assert_eq!(bench.read(), "bc=9");
}

#[test]
fn row_023_packets_over_many_chunks() {
    for chunks in 3..=12 {
        let mut bench = Bench::new(8);
        bench.put("w1.0[x10 m20>]");
        for id in 1..chunks - 1 {
            bench.put(&format!("w1.{id}[<m20>]"));
        }
        bench.put(&format!("w1.{}[<m20 y10]", chunks - 1));
        assert_eq!(bench.read(), format!("x {} y", "m".repeat(chunks)));
    }
}

#[test]
fn row_024_a_packet_over_the_wrap_of_chunk_ids() {
    let mut bench = Bench::ring();
    bench.put("w1.4294967294[a>] w1.4294967295[<b>] w1.0[<c>] w1.1[<d>] w1.2[<e]");
    assert_eq!(bench.read(), "abcde");
}

#[test]
fn row_025_an_empty_chunk_in_front() {
    let mut bench = Bench::ring();
    bench.put("w1.0[] w1.1[a10 b20>] w1.2[<c30 d40>]");
    assert_eq!(bench.read(), "a bc");
}

#[test]
fn row_026_an_empty_chunk_does_not_end_a_packet() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a10 b10>] w1.1[]");
    assert_eq!(bench.read(), "a");
}

#[test]
fn row_027_an_empty_chunk_inside_a_packet() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a10>] w1.1[] w1.2[<b10 c20]");
    assert_eq!(bench.read(), "ab c");
}

#[test]
fn row_028_every_other_chunk_of_a_packet_is_empty() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a>] w1.1[] w1.2[<b>] w1.3[] w1.4[<c]");
    assert_eq!(bench.read(), "abc");
}

#[test]
fn row_029_two_producers_with_the_same_writer_id() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a10 b10>] p2w1.0[c10 d10] w1.1[<e10 f10]");
    bench.buffer.begin_read();
    let mut uids = Vec::new();
    while let Some(packet) = bench.buffer.next_packet() {
        uids.push((packet.slices().next().unwrap()[0], packet.identity.uid));
    }
    // Writer 1 of producer 1 is read to its end first, as by V1.
    assert_eq!(uids, [(b'a', 11), (b'b', 11), (b'f', 11), (b'c', 22), (b'd', 22)]);
}

#[test]
fn row_030_an_aborted_continuation_is_lost_and_named() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a10 b10>] w1.1[<%] w1.2[d10]");
    assert_eq!(bench.read(), "a d=129");
    let stats = bench.stats();
    assert_eq!((stats.trace_writer_packet_loss, stats.abi_violations), (1, 0));
}

#[test]
fn row_031_a_loss_of_the_writer_is_counted_before_any_read() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a10 %]");
    assert_eq!(bench.stats().trace_writer_packet_loss, 1);
    assert_eq!(bench.read(), "a");
    bench.put("w1.1[b]");
    assert_eq!(bench.read(), "b=129", "attributed behind the packets in front of the loss");
}

#[test]
fn row_032_a_chunk_at_the_very_end_of_the_buffer_inside_a_packet() {
    let mut bench = Bench::ring();
    bench.put("p2w1.0[x2032] w1.0[a2032>] w1.1[<b100>] w1.2[<c]");
    assert_eq!(bench.read(), "abc");
}

#[test]
fn row_033_an_orphan() {
    let mut bench = Bench::ring();
    bench.put("w1.0[<a32] w1.1[b32]");
    assert_eq!(bench.read(), "b=9");
}

#[test]
fn row_034_a_broken_chain() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a32>] w1.1[b32]");
    assert_eq!(bench.read(), "b=33");
}

#[test]
fn row_035_a_broken_chain_does_not_wait_for_being_overwritten() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a32>] w1.1[b32]").read(), "b=33", "V1 waits");
    assert_eq!(bench.read(), "");
    bench.put("p2w1.0[x4080] w1.2[c]");
    assert_eq!(bench.read(), "c", "told once");
}

#[test]
fn row_036_a_missing_middle() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a32>] w1.2[<b32] w1.3[c32]");
    assert_eq!(bench.read(), "c=27");
}

#[test]
fn a_fragmented_packet_of_empty_fragments_is_not_returned() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a e1>] w1.1[<e1>] w1.2[<e1 b]");
    assert_eq!(bench.read(), "a b");
}
