//! The advice of `docs/spec/trace-buffer.md §19`, and cases that its table lacks.

use super::*;

#[test]
fn an_abort_is_reported_after_the_packets_before_it() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b %] w1.1[c d]");
    assert_eq!(bench.read(), "a b c=129 d", "V2 tells it on a");
}

#[test]
fn an_abort_waits_with_its_chunk_over_passes_and_in_clones() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b %]");
    assert_eq!(bench.read(), "a b");
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(clone.read(), "");
    assert_eq!(bench.put("w1.1[c]").read(), "c=129");
}

#[test]
fn an_overwritten_chunk_reports_its_abort() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a %] w1.1[b2000]");
    bench.put("p2w1.0[x3000] w1.2[c]");
    assert_eq!(bench.read(), "c=193 x");
}

#[test]
fn a_break_seen_while_copying_marks_the_next_packet() {
    let mut bench = Bench::ring();
    bench.raw(1, 0, 2, &[2, b'a', b'a', 0x7f]);
    bench.put("w1.1[b c]");
    assert_eq!(bench.read(), "a b=5 c", "V2 tells nothing");
}

#[test]
fn a_gap_is_marked_in_every_order_of_commits() {
    for order in ["w1.0[a] w1.3[d] w1.1[b]", "w1.3[d] w1.0[a] w1.1[b]", "w1.1[b] w1.0[a] w1.3[d]"] {
        let mut bench = Bench::ring();
        bench.put(order);
        assert_eq!(bench.read(), "a b d=3", "{order}");
    }
}

#[test]
fn stored_chunks_are_checked_at_each_read() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b c] w1.1[d]");
    assert_eq!(bench.read_some(1), "a");
    // A patch that makes a size field point anywhere.
    assert!(bench.patch(1, 0, 32, b"\xff\xff\xff\x0f", false));
    assert_eq!(bench.read(), "d=5");
    assert_eq!(bench.stats().abi_violations, 1);
}

#[test]
fn a_changed_size_in_read_data_breaks_nothing() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a20 b20 c20]pad512").read(), "a b");
    // The read position is now in the middle of a fragment.
    bench.put("w1.0[x100 y100] w1.1[z]");
    assert_eq!(bench.read_bytes().last().unwrap()[..], [b'z'; 31]);
    bench.buffer.assert_consistent();
}

#[test]
fn the_number_of_remembered_sequences_is_bounded() {
    let mut bench = Bench::ring();
    for producer in 1..=4u16 {
        for writer in 1..=1500u16 {
            bench.raw_of(producer, writer, 0, 0, &[]);
        }
    }
    // A record is 16 bytes at least.
    assert!(bench.buffer.sequences.len() <= 4096 / 16 + 1153, "{}", bench.buffer.sequences.len());
    bench.buffer.assert_consistent();
}

#[test]
fn a_writer_id_that_is_used_again_is_another_sequence() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a] w1.1[b]").read(), "a b");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    assert_eq!(bench.put("w1.0[c] w1.1[d] w1.2[e]").read(), "c d e", "V2 takes e only");
    assert_eq!(bench.stats().chunks_discarded, 0);
    assert_eq!(bench.buffer.sequences.len(), 1);
}

#[test]
fn data_of_the_earlier_writer_are_read_first_and_whole() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.1[b c>] w1.2[<d]");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    bench.put("w1.0[e f>] w1.1[<g] w2.0[h]");
    bench.buffer.assert_consistent();
    assert_eq!(bench.read(), "a b cd e fg h");
    assert_eq!(bench.stats().chunks_committed_out_of_order, 0);
    let writers: Vec<_> = bench.buffer.writers().map(|stats| stats.counts.iter().sum::<u64>()).collect();
    assert_eq!(writers, [5, 1], "both are one writer to the statistics");
}

#[test]
fn an_unfinished_packet_of_the_earlier_writer_delays_no_reader() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a b>]");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    assert_eq!(bench.put("w1.0[c]").read(), "a c");
    assert!(!bench.buffer.patch(ProducerId(1), WriterId(1), 0, [].into_iter(), false), "it is the new one's");
    assert_eq!(bench.read(), "");
}

#[test]
fn the_next_writer_reports_the_loss_of_the_earlier_one() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a2000]");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    bench.put("w1.0[b] p2w1.0[x1900] w1.1[c]");
    assert_eq!(bench.read(), "a b c x");

    let mut bench = Bench::ring();
    bench.put("w1.0[a2000]");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    bench.put("p2w1.0[x3000] w1.0[b]");
    assert_eq!(bench.read(), "b=65 x");

    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a %]").read(), "a");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    assert_eq!(bench.put("w1.0[b]").read(), "b=129");
}

#[test]
fn a_producer_id_that_is_used_again_is_another_producer() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.1[b] p2w1.0[x]");
    bench.buffer.retire_producer(ProducerId(1));
    bench.put("w1.0[c] p2w1.1[y]");
    bench.buffer.assert_consistent();
    assert_eq!(bench.read(), "a b c x y");
}

#[test]
fn writers_that_reuse_an_id_leave_a_bounded_number_of_sequences() {
    let mut bench = Bench::ring();
    for round in 0..5000 {
        bench.put("w1.0[a]");
        if round % 7 == 0 {
            bench.read();
        }
        bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    }
    assert!(bench.buffer.sequences.len() <= 4096 / 48 + 1153, "{}", bench.buffer.sequences.len());
    bench.buffer.assert_consistent();
}

/// Reads the scraped part of w1.0, and overwrites it while its sequence waits for the rest.
fn overwritten_while_written() -> Bench {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b c]pad256").read(), "a b");
    assert_eq!(bench.put("p2w1.0[x4000]").read(), "x");
    assert_eq!(bench.stats().chunks_overwritten, 0, "it had nothing unread");
    bench
}

#[test]
fn a_scraped_chunk_that_is_never_completed_marks_its_successor() {
    let mut bench = overwritten_while_written();
    bench.put("w1.1[d] w1.2[e]");
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(clone.read(), "d=65 e", "V2 tells nothing");
    bench.put("w1.0[a b c]");
    assert_eq!(bench.read(), "c d e", "the clone was too early");
    let mut bench = overwritten_while_written();
    assert_eq!(bench.put("w1.1[d]").read(), "d=65");
    assert_eq!(bench.put("w1.0[a b c] w1.2[e]").read(), "e", "now it is too late");
}

#[test]
fn a_completion_before_the_successor_is_read_leaves_it_unmarked() {
    let mut bench = overwritten_while_written();
    assert_eq!(bench.put("w1.1[d] w1.0[a b c]").read(), "c d");
    let mut bench = overwritten_while_written();
    assert_eq!(bench.put("w1.0[a b] w1.1[d]").read(), "d", "there was nothing more in it");
    assert_eq!(bench.stats().chunks_discarded, 1);
    let mut bench = overwritten_while_written();
    assert_eq!(bench.put("w1.0[a b %] w1.1[d]").read(), "d=129", "its writer gave a packet up");
}

#[test]
fn an_overwritten_empty_successor_passes_the_mark_on() {
    let mut bench = overwritten_while_written();
    bench.put("w1.1[]");
    assert_eq!(bench.put("p2w1.1[y4000] w1.2[d]").read(), "d=65 y");
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[a]").read(), "a");
    bench.put("w1.2[]");
    assert_eq!(bench.put("p2w1.0[x4000] w1.3[d]").read(), "d=3 x", "a gap in front of it, too");
}

#[test]
fn a_chunk_that_was_not_read_continues_without_a_gap() {
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0[z] w1.1?[a]pad256").read(), "z");
    assert_eq!(bench.put("p2w1.0[x4000]").read(), "x");
    assert_eq!(bench.put("w1.1[a b] w1.2[c]").read(), "a b c");
}

#[test]
fn the_next_writer_reports_a_half_written_chunk() {
    let mut bench = overwritten_while_written();
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    assert_eq!(bench.put("w1.0[d]").read(), "d=65");
    let mut bench = Bench::ring();
    assert_eq!(bench.put("w1.0?[a b]pad256").read(), "a");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    assert_eq!(bench.put("p2w1.0[x4000] w1.0[d]").read(), "d=65 x");
}

#[test]
fn a_reused_producer_number_does_not_keep_the_old_name() {
    // The buffer belonged to a clone when the producer disconnected, so it was not told.
    let mut buffer = CentralBuffer::new(4, FillPolicy::Ring).unwrap();
    for uid in [11, 22] {
        let identity = Identity { uid, ..Identity::default() };
        let header = ChunkHeader { writer_id: 1, chunk_id: 7, count: 1, flags: 0 };
        let payload: &[u8] = b"\x01a";
        buffer.copy(&Chunk { producer: ProducerId(5), identity, header, complete: true, payload });
    }
    buffer.begin_read();
    let mut uids = Vec::new();
    while let Some(packet) = buffer.next_packet() {
        uids.push(packet.identity.uid);
    }
    assert_eq!(uids, [11, 22]);
}
