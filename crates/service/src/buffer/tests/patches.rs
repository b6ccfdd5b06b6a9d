//! Rows 82-92: patches.

use super::record::NEEDS_PATCHING;
use super::*;

#[test]
fn row_082_four_bytes_are_replaced() {
    let mut bench = Bench::ring();
    bench.raw_flags(1, 0, 1, NEEDS_PATCHING, &[13, b'm', b'm', b'm', b'm', 0, 0, 0, 0, b'm', b'm', b'm', b'm', b'm']);
    assert_eq!(bench.read_bytes(), Vec::<Vec<u8>>::new());
    assert!(bench.patch(1, 0, 5, b"pppp", false));
    assert_eq!(bench.read_bytes(), [b"mmmmppppmmmmm"]);
    assert_eq!(bench.stats().patches_succeeded, 1);
}

#[test]
fn row_083_patches_without_a_chunk_fail() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a20]");
    assert!(!bench.patch(2, 0, 5, b"xxxx", false));
    assert!(!bench.patch(1, 1, 5, b"xxxx", false));
    assert!(!bench.patch(1, u32::MAX, 5, b"xxxx", false));
    assert_eq!(bench.stats().patches_failed, 3);
    assert_eq!(bench.read(), "a");
}

#[test]
fn row_084_the_first_and_the_last_bytes_of_a_middle_chunk() {
    let mut bench = Bench::ring();
    let mut middle = vec![14];
    middle.extend_from_slice(b"mmmmmmmmmmmmmm");
    bench.put("w1.0[a>]");
    bench.raw_flags(1, 1, 1, 7, &middle);
    bench.put("w1.2[<c]");
    assert_eq!(bench.read(), "");
    assert!(bench.patch(1, 1, 1, b"nnnn", true));
    assert_eq!(bench.read(), "");
    assert!(bench.patch(1, 1, 11, b"oooo", false));
    bench.buffer.begin_read();
    let packet = bench.buffer.next_packet().unwrap();
    assert_eq!(packet.slices().nth(1).unwrap(), b"nnnnmmmmmmoooo");
    assert_eq!(bench.stats().patches_succeeded, 2);
}

#[test]
fn row_085_sequences_wait_on_their_own() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a>] w2.0[c] w2.1![d] w2.2[e] w3.0![f]");
    assert_eq!(bench.read(), "c");
    bench.unblock(2, 1);
    assert_eq!(bench.read(), "d e");
    assert!(bench.buffer.patch(ProducerId(1), WriterId(3), 0, [].into_iter(), true));
    assert_eq!(bench.read(), "");
    bench.unblock(3, 0);
    assert_eq!(bench.read(), "f");
}

#[test]
fn row_086_so_do_packets_that_continue() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a>] w1.1[<b] w2.0[c] w2.1![d>] w2.2[<e] w3.0![f>] w3.1[<g]");
    assert_eq!(bench.read(), "c");
    bench.unblock(2, 1);
    assert_eq!(bench.read(), "de");
    bench.unblock(3, 0);
    assert_eq!(bench.read(), "fg");
}

#[test]
fn row_087_only_the_last_packet_of_a_chunk_waits() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0![x10 a100>]").read(), "x");
}

#[test]
fn row_088_packets_in_front_of_an_open_one_do_not_wait() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0![x10 y20 a100>] w1.1[<b z]").read(), "x y", "V1 returns none of the chunk");
    bench.unblock(1, 0);
    assert_eq!(bench.read(), "ab z");
}

#[test]
fn row_089_patches_in_any_order_of_chunks() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a>] w1.1![<b>] w1.2[<c]");
    bench.unblock(1, 1);
    assert_eq!(bench.read(), "");
    bench.unblock(1, 0);
    assert_eq!(bench.read(), "abc");
}

#[test]
fn row_090_an_unpatched_packet_is_overwritten_whole() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a1024>] w1.1[<b1024] w1.2[c2000] w1.3[d2000]");
    assert_eq!(bench.read(), "c=65 d");
}

#[test]
fn row_091_offsets_out_of_range_touch_nothing() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a16] w2.0[b]");
    for offset in [13, 16, u32::MAX - 3, u32::MAX - 1024, u32::MAX] {
        assert!(!bench.patch(1, 0, offset, b"xxxx", false), "{offset}");
    }
    assert_eq!(bench.read(), "a b");
}

#[test]
fn row_092_the_commit_wins_over_patches_of_the_scraped_copy() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a b]pad512");
    assert!(bench.patch(1, 0, 4, b"xxxx", false));
    bench.put("w1.0[a b]");
    assert_eq!(bench.read(), "a b");
}
