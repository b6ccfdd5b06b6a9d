//! Rows 37-51: order of chunks, gaps, ids that wrap around.

use super::*;

#[test]
fn row_037_a_gap_is_not_waited_for() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a] w1.2[c]").read(), "a c=3", "V1 waits for 1");
    assert_eq!(bench.put("w1.1[b]").read(), "");
    let stats = bench.stats();
    assert_eq!((stats.chunks_discarded, stats.chunks_committed_out_of_order), (1, 0));
}

#[test]
fn row_038_chunks_out_of_order() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.2[c] w1.1[b]");
    assert_eq!(bench.read(), "a b c");
    assert_eq!(bench.stats().chunks_committed_out_of_order, 1);
}

#[test]
fn row_039_fragments_out_of_order() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a>] w1.2[<c] w1.1[<b>]");
    assert_eq!(bench.read(), "abc");
}

#[test]
fn row_040_a_packet_read_before_its_middle_came_is_lost() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a>] w1.2[<c] w2.0[d]").read(), "d", "V1 waits for the middle");
    assert_eq!(bench.put("w1.1[<b>] w1.3[e]").read(), "e=27");
    assert_eq!(bench.stats().chunks_discarded, 1);
}

#[test]
fn row_041_late_ones_around_the_wrap_of_ids() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.4294967294[a] w1.1[d]").read(), "a d=3", "V1 waits, and returns all");
    assert_eq!(bench.put("w1.0[c]").read(), "");
    assert_eq!(bench.put("w1.4294967295[b]").read(), "");
    assert_eq!(bench.stats().chunks_discarded, 2);
}

#[test]
fn row_042_a_gap_at_the_wrap_of_ids() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.4294967294[a] w1.0[c]").read(), "a c=3", "V1 waits for the one between");
    assert_eq!(bench.put("w1.4294967295[b]").read(), "");
    assert_eq!(bench.put("w1.1[d]").read(), "d");
}

#[test]
fn row_043_packets_after_a_gap_are_returned() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.1[b] w1.2[c] w1.5[d] w1.6[e] w1.7[f]");
    assert_eq!(bench.read(), "a b c d=3 e f", "V1 stops in front of it");
}

#[test]
fn row_044_six_around_the_wrap_of_ids() {
    let mut bench = Bench::ring();
    bench.put("w1.4294967293[a] w1.4294967294[b] w1.4294967295[c] w1.0[d] w1.1[e] w1.2[f]");
    assert_eq!(bench.read(), "a b c d e f");
}

#[test]
fn row_045_gaps_are_marked_at_once() {
    let mut bench = Bench::ring();
    bench.put("w1.1[a] w1.3[b] w1.4[c] w1.6[d]");
    assert_eq!(bench.read(), "a b=3 c d=3");
}

#[test]
fn row_046_gaps_between_passes() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.1[a]").read(), "a");
    assert_eq!(bench.put("w1.2[a]").read(), "a");
    assert_eq!(bench.put("w1.4[a]").read(), "a=3");
    assert_eq!(bench.put("w1.5[a]").read(), "a");
}

/// Fills the buffer with chunks of another producer, and reads them.
fn fill(bench: &mut Bench, first: u32) {
    for id in first..first + 8 {
        bench.put(&format!("p2w1.{id}[x1008]"));
    }
    bench.read();
}

#[test]
fn row_047_a_sequence_outlives_its_chunks() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.1[a]").read(), "a");
    fill(&mut bench, 0);
    assert_eq!(bench.put("w1.2[a]").read(), "a");
    fill(&mut bench, 8);
    assert_eq!(bench.put("w1.4[a]").read(), "a=3");
}

#[test]
fn row_048_overwriting_read_packets_is_no_loss() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.1[a]").read(), "a");
    fill(&mut bench, 0);
    fill(&mut bench, 8);
    assert_eq!(bench.put("w1.2[a]").read(), "a", "V1 marks it");
}

#[test]
fn row_049_gaps_over_the_wrap_of_chunk_ids() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.4294967294[a]").read(), "a");
    assert_eq!(bench.put("w1.4294967295[a] w1.0[b]").read(), "a b");
    assert_eq!(bench.put("w1.3[a]").read(), "a=3");
}

#[test]
fn row_050_a_chunk_after_its_successor_was_read_is_refused() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a]").read(), "a");
    assert_eq!(bench.put("w1.2[c]").read(), "c=3");
    assert_eq!(bench.put("w1.1[b]").read(), "");
    assert_eq!(bench.stats().chunks_discarded, 1);
}

#[test]
fn row_051_sequences_without_chunks_are_forgotten_in_the_end() {
    let mut bench = Bench::new(64);
    for writer in 1..=1153 {
        bench.put(&format!("w{writer}.5[a]"));
    }
    bench.read();
    bench.put("p2w1.0[b]");
    assert_eq!(bench.buffer.sequences.len(), 1025);
    // A forgotten one starts fresh, a kept one knows its duplicates.
    assert_eq!(bench.read(), "b");
    assert_eq!(bench.put("w1.5[a] w1153.5[a]").read(), "a=3");
    assert_eq!(bench.stats().chunks_discarded, 1);
    // The buffer cannot know if something was lost before it, so it marks a loss. A new writer
    // begins with 0.
    assert_eq!(bench.put("w2.6[c] p3w1.0[d]").read(), "c=3 d");
    assert_eq!(bench.put("w2.7[e]").read(), "e");
}

#[test]
fn a_gap_is_seen_in_every_order_of_commits() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.3[d] w1.1[b]");
    assert_eq!(bench.read(), "a b d=3");
}

#[test]
fn a_gap_that_is_filled_while_waiting_is_not_reported() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a]").read(), "a");
    assert_eq!(bench.put("w1.2![c]").read(), "");
    bench.put("w1.1[b]");
    assert_eq!(bench.read(), "b");
    bench.unblock(1, 2);
    assert_eq!(bench.read(), "c");
}

#[test]
fn ids_that_span_half_the_circle_are_refused() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.2147483647[b] w1.2147483649[c]");
    assert_eq!(bench.stats().abi_violations, 1);
    assert_eq!(bench.read(), "a b=3");
}
