//! Rows 56-81: chunks that come again, scraped and committed.

use super::*;

#[test]
fn row_056_a_scraped_chunk_is_completed() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a100 b100]pad512 w1.0[a100 b100 c d]");
    assert_eq!(bench.read(), "a b c d");
    assert_eq!(bench.stats().chunks_rewritten, 1);
}

#[test]
fn row_057_read_packets_are_not_returned_again() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    assert_eq!(bench.put("w1.0[a b c d]").read(), "b c d");
}

#[test]
fn row_058_an_incomplete_chunk_that_was_read_to_its_last_finished_packet() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a20 b30 _5]pad512").read(), "a b");
    assert_eq!(bench.put("w1.0[a20 b30 c d]").read(), "c d");
}

#[test]
fn row_059_a_complete_chunk_does_not_grow() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a b]").read(), "a b");
    assert_eq!(bench.put("w1.0[a b c d]").read(), "", "V1's release builds return c and d");
    assert_eq!(bench.put("w1.1[e]").read(), "e");
}

#[test]
fn row_060_a_complete_chunk_that_was_read_is_refused() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a b]").read(), "a b");
    assert_eq!(bench.put("w1.0[a b c]").read(), "");
    assert_eq!(bench.stats().chunks_discarded, 1);
}

#[test]
fn row_061_other_content_is_ignored() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a b] w1.1[c d]").read_some(3), "a b c");
    assert_eq!(bench.put("w1.0[x32 y32 z32]").read(), "d");
}

#[test]
fn row_062_the_successor_waits_for_the_completion() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    assert_eq!(bench.put("w1.1[d e] w1.0[a b c]").read(), "b c d e");
}

#[test]
fn row_063_so_does_a_continuation() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    assert_eq!(bench.put("w1.1[<d e] w1.0[a b c>]").read(), "b cd e");
}

#[test]
fn row_064_identical_commits_before_reading_count_once() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a] w1.0[a] w1.1[b]").read(), "a b");
    assert_eq!((bench.stats().chunks_written, bench.stats().chunks_rewritten), (2, 0));
}

#[test]
fn row_065_an_identical_commit_after_reading_is_refused() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a]").read(), "a");
    assert_eq!(bench.put("w1.0[a] w1.1[b]").read(), "b");
    assert_eq!(bench.stats().chunks_discarded, 1);
}

#[test]
fn row_066_an_open_chunk_blocks_its_sequence() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad128").read(), "a");
    assert_eq!(bench.put("w1.1[c d]").read(), "");
    assert_eq!(bench.put("w1.0[a b]").read(), "b c d");
}

#[test]
fn row_067_an_open_chunk_whose_last_packet_continues() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b>]pad128").read(), "a");
    assert_eq!(bench.put("w1.1[<c d] w1.0[a b>]").read(), "bc d");
}

#[test]
fn row_068_a_padded_chunk_is_completed() {
    let mut bench = Bench::new(3);
    assert_eq!(bench.put("w1.0?[a b]pad2048").read(), "a");
    assert_eq!(bench.put("w1.0[a b]").read(), "b");
}

#[test]
fn row_069_flags_of_an_incomplete_chunk_block_nothing() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?![a20 b30>]").read(), "a");
}

#[test]
fn row_070_the_last_fragment_of_an_incomplete_chunk_is_not_taken() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a]").read(), "");
}

#[test]
fn row_071_an_incomplete_chunk_can_be_overwritten() {
    let mut bench = Bench::ring();
    bench.put("w1.1[a1008] w1.2?[b504 b504] w1.3[c1008] w1.4[d1008] w1.5[e1008] w1.6[f1008]");
    assert_eq!(bench.read(), "c=65 d e f");
}

#[test]
fn row_072_the_same_scrape_again() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "a b");
    assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "");
    assert_eq!(bench.stats().chunks_discarded, 0);
    assert_eq!(bench.put("w1.0[a b c>] w1.1[<d e]").read(), "cd e");
}

fn overwrite(bench: &mut Bench) {
    for id in 0..4 {
        assert_eq!(bench.put(&format!("p2w1.{id}[x1008]")).read(), "x");
    }
}

#[test]
fn row_073_scraped_again_after_it_was_overwritten() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b>]pad256").read(), "a");
    overwrite(&mut bench);
    assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "b");
}

#[test]
fn row_074_completed_after_it_was_overwritten() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "a b");
    overwrite(&mut bench);
    assert_eq!(bench.put("w1.0[a b c>] w1.1[<d e]").read(), "cd e");
}

#[test]
fn row_075_a_complete_one_is_not_taken_again() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a b c]").read(), "a b c");
    overwrite(&mut bench);
    assert_eq!(bench.put("w1.0[a b c d]").read(), "");
}

#[test]
fn row_076_a_completed_chunk_moves_to_the_newest_place() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a32 b32]pad512").read(), "a");
    bench.put("p2w1.0[x3568]");
    bench.put("w1.0[a32 b32 c64>] p3w1.0[y] w1.1[<d e]");
    assert_eq!((bench.stats().chunks_relocated, bench.stats().write_wrap_count), (1, 1));
    assert_eq!(bench.read(), "b cd e x y");
}

#[test]
fn row_077_a_growing_chunk_that_is_unread_stays() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    bench.put("w1.0?[a b c]pad512 w1.0[a b c d]");
    let stats = bench.stats();
    assert_eq!((stats.chunks_rewritten, stats.chunks_relocated), (2, 0));
    assert_eq!(bench.read(), "b c d");
}

#[test]
fn row_078_in_a_discard_buffer_nothing_moves() {
    let mut bench = Bench::discard();
    assert_eq!(bench.put("w1.0?[a32 b32]pad512").read(), "a");
    bench.put("p2w1.0[x3568] w1.0[a32 b32 c64]");
    let stats = bench.stats();
    assert_eq!((stats.chunks_rewritten, stats.chunks_relocated, stats.chunks_discarded), (1, 0, 0));
    assert_eq!(bench.read(), "b c x");
}

#[test]
fn row_079_the_continuation_was_there_first() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    bench.put("w1.1[<d e] w1.0[a b c>]");
    assert_eq!(bench.stats().chunks_relocated, 1);
    assert_eq!(bench.read(), "b cd e");
}

#[test]
fn row_080_a_full_ring_with_a_read_open_chunk() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
    bench.put("p2w1.0[x1776] p2w1.1[y1776] w1.0[a b c]");
    assert_eq!(bench.read(), "b c x y");
}

#[test]
fn row_081_a_late_completion() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b c]pad512").read(), "a b");
    overwrite(&mut bench);
    assert_eq!(bench.stats().chunks_overwritten, 0);
    assert_eq!(bench.put("w1.0[a b c]").read(), "c");
}

#[test]
fn a_chunk_patched_in_shared_memory_between_scrape_and_commit_is_taken() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0![a b>] w1.1[<c d]").read(), "a");
    assert_eq!(bench.put("w1.0[a b>]").read(), "bc d");
}

/// google/perfetto#6677: a writer moves the packet that it has just finished, and a scrape sees the
/// chunk in between.
#[test]
fn packets_that_moved_after_they_were_scraped_are_not_fused() {
    let mut moved = vec![19; 60];
    moved[1..20].fill(b'a');
    moved[21..40].fill(b'b');
    moved[41..60].fill(b'c');
    // Where the scraped packets ended is the size of all that follows now.
    moved[32] = 27;
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a16 b16 z]pad512").read(), "a b");
    bench.raw(1, 0, 3, &moved);
    assert_eq!(bench.read_bytes(), [vec![b'c'; 19]], "in the ring");
    let mut bench = Bench::discard();
    assert_eq!(bench.put("w1.0?[a16 b16 z]pad512").read(), "a b");
    bench.raw(1, 0, 3, &moved);
    assert_eq!(bench.read(), "c=5", "in its place");
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a16 b16 z]pad512").read(), "a b");
    overwrite(&mut bench);
    bench.raw(1, 0, 3, &moved);
    assert_eq!(bench.read(), "c=5", "admitted again");
    assert_eq!(bench.stats().abi_violations, 1);
}

#[test]
fn moving_a_chunk_that_overwrites_its_own_successor_reports_the_loss() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("p2w1.0[x512] w1.0?[a b]pad512").read(), "a x");
    bench.put("p2w1.1[y3008]");
    // w1.1 goes to the start; the completed w1.0 is then written after it, and so on around the
    // ring.
    bench.put("w1.1[d496] w1.2[e496]");
    bench.put("w1.0[a b c]");
    let read = bench.read();
    assert!(read.contains("e") && !read.contains('a'), "{read}");
}
