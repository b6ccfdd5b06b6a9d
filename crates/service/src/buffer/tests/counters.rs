//! Every counter of `docs/spec/trace-buffer.md §14`, where it moves and where it does not.

use super::*;

/// Returns the increase of the counters during an action.
fn difference(bench: &mut Bench, action: impl FnOnce(&mut Bench)) -> Stats {
    let before = bench.stats();
    action(bench);
    let after = bench.stats();
    Stats {
        bytes_written: after.bytes_written - before.bytes_written,
        chunks_written: after.chunks_written - before.chunks_written,
        chunks_rewritten: after.chunks_rewritten - before.chunks_rewritten,
        chunks_relocated: after.chunks_relocated - before.chunks_relocated,
        chunks_overwritten: after.chunks_overwritten - before.chunks_overwritten,
        bytes_overwritten: after.bytes_overwritten - before.bytes_overwritten,
        chunks_read: after.chunks_read - before.chunks_read,
        bytes_read: after.bytes_read - before.bytes_read,
        padding_bytes_written: after.padding_bytes_written - before.padding_bytes_written,
        padding_bytes_cleared: after.padding_bytes_cleared - before.padding_bytes_cleared,
        chunks_committed_out_of_order: after.chunks_committed_out_of_order - before.chunks_committed_out_of_order,
        write_wrap_count: after.write_wrap_count - before.write_wrap_count,
        patches_succeeded: after.patches_succeeded - before.patches_succeeded,
        patches_failed: after.patches_failed - before.patches_failed,
        patches_of_overwritten: after.patches_of_overwritten - before.patches_of_overwritten,
        readaheads_succeeded: after.readaheads_succeeded - before.readaheads_succeeded,
        readaheads_failed: after.readaheads_failed - before.readaheads_failed,
        abi_violations: after.abi_violations - before.abi_violations,
        chunks_discarded: after.chunks_discarded - before.chunks_discarded,
        chunks_without_room: after.chunks_without_room - before.chunks_without_room,
        trace_writer_packet_loss: after.trace_writer_packet_loss - before.trace_writer_packet_loss,
        gaps_between_packets: after.gaps_between_packets - before.gaps_between_packets,
    }
}

/// One record of so many bytes.
fn written(bytes: u64) -> Stats {
    Stats { chunks_written: 1, bytes_written: bytes, ..Stats::default() }
}

#[test]
fn a_record_is_written_with_its_header_and_its_padding() {
    let mut bench = Bench::ring();
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.0[]");
        }),
        written(16)
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.1[a16]");
        }),
        written(32)
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.2[a17]");
        }),
        written(48)
    );
    // A chunk that is still being written gets all of its space.
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.3?[a20 b20]pad512");
        }),
        written(512)
    );
}

#[test]
fn rewriting_in_place_is_not_writing() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a b]pad512");
    let larger = difference(&mut bench, |bench| {
        bench.put("w1.0?[a b c]pad512");
    });
    assert_eq!(larger, Stats { chunks_rewritten: 1, ..Stats::default() });
    let same = difference(&mut bench, |bench| {
        bench.put("w1.0?[a b c]pad512");
    });
    assert_eq!(same, Stats::default());
}

#[test]
fn a_relocation_is_a_write_and_not_a_rewrite() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a b]pad512");
    bench.read();
    let moved = difference(&mut bench, |bench| {
        bench.put("w1.0[a b c]");
    });
    assert_eq!(moved, Stats { chunks_relocated: 1, ..written(112) });
}

#[test]
fn a_readmission_is_a_write() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a b]pad512");
    bench.read();
    bench.put("p2w1.0[x3552] p2w1.1[y496]");
    let again = difference(&mut bench, |bench| {
        bench.put("w1.0[a b c]");
    });
    assert_eq!((again.chunks_written, again.bytes_written, again.chunks_relocated), (1, 112, 0));
    assert_eq!(again.chunks_discarded, 0);
}

#[test]
fn overwriting_counts_records_with_something_unread() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 1024).record("w1.1", 1024).record("w1.2", 2048);
    assert_eq!(bench.read_some(1), "z");
    let over = difference(&mut bench, |bench| {
        bench.record("w2.0", 2048);
    });
    let expected = Stats { chunks_overwritten: 1, bytes_overwritten: 1024, write_wrap_count: 1, ..written(2048) };
    assert_eq!(over, expected);
}

#[test]
fn an_empty_chunk_is_overwritten_without_a_loss() {
    let mut bench = Bench::ring();
    bench.put("w1.0[]").record("w1.1", 4080);
    let over = difference(&mut bench, |bench| {
        bench.record("w2.0", 16);
    });
    assert_eq!((over.chunks_overwritten, over.bytes_overwritten), (0, 0));
}

#[test]
fn older_chunks_of_the_sequence_are_overwritten_with_a_newer_one() {
    let mut bench = Bench::ring();
    // Chunk 1 was committed before chunk 0.
    bench.record("w1.1", 1024).record("p2w1.0", 1024).record("w1.0", 1024).record("p2w1.1", 1024);
    let over = difference(&mut bench, |bench| {
        bench.record("w3.0", 1024);
    });
    assert_eq!((over.chunks_overwritten, over.bytes_overwritten), (2, 2048));
}

#[test]
fn a_chunk_is_read_with_its_last_fragment() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b] w1.1[c]");
    let first = difference(&mut bench, |bench| assert_eq!(bench.read_some(1), "a"));
    assert_eq!(first, Stats::default());
    let second = difference(&mut bench, |bench| assert_eq!(bench.read_some(1), "b"));
    assert_eq!(second, Stats { chunks_read: 1, bytes_read: 80, ..Stats::default() });
    let rest = difference(&mut bench, |bench| assert_eq!(bench.read(), "c"));
    assert_eq!(rest, Stats { chunks_read: 1, bytes_read: 48, ..Stats::default() });
    assert_eq!(difference(&mut bench, |bench| assert_eq!(bench.read(), "")), Stats::default());
}

#[test]
fn a_growing_chunk_is_read_several_times() {
    let mut bench = Bench::ring();
    bench.put("w1.0?[a b]pad512");
    bench.read();
    bench.put("w1.0?[a b c]pad512");
    bench.read();
    assert_eq!((bench.stats().chunks_read, bench.stats().bytes_read), (2, 1024));
}

#[test]
fn padding_is_written_at_the_end_and_after_a_record() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 2048).record("w1.1", 2048);
    let wrapped = difference(&mut bench, |bench| {
        bench.record("w1.2", 3072);
    });
    assert_eq!((wrapped.padding_bytes_written, wrapped.padding_bytes_cleared), (1024, 0));
    // It does not fit at the end: the rest of the buffer becomes padding again.
    let next = difference(&mut bench, |bench| {
        bench.record("w1.3", 2048);
    });
    assert_eq!((next.padding_bytes_written, next.padding_bytes_cleared), (1024 + 1024, 1024));
}

#[test]
fn read_records_in_the_way_count_as_padding() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 2048).record("w1.1", 2048);
    bench.read();
    bench.read();
    let over = difference(&mut bench, |bench| {
        bench.record("w1.2", 2048);
    });
    assert_eq!((over.padding_bytes_cleared, over.chunks_overwritten), (2048, 0));
}

#[test]
fn every_insertion_before_the_end_is_out_of_order() {
    let mut bench = Bench::ring();
    bench.put("w1.5[a] w1.7[b] w1.6[c] w1.4[d] w2.0[e] w1.8[f]");
    assert_eq!(bench.stats().chunks_committed_out_of_order, 2);
}

#[test]
fn patches_are_counted_one_by_one_and_failures_by_the_entry() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a40]");
    let patches =
        |offsets: &[u32]| -> Vec<Patch> { offsets.iter().map(|&offset| Patch { offset, data: *b"aaaa" }).collect() };
    let mut entry = |chunk_id: u32, offsets: &[u32]| {
        difference(&mut bench, |bench| {
            bench.buffer.patch(ProducerId(1), WriterId(1), chunk_id, patches(offsets).into_iter(), true);
        })
    };
    assert_eq!(entry(0, &[1, 5, 9]), Stats { patches_succeeded: 3, ..Stats::default() });
    assert_eq!(entry(0, &[]), Stats::default());
    assert_eq!(entry(1, &[1, 5, 9]), Stats { patches_failed: 1, ..Stats::default() });
    assert_eq!(entry(0, &[1, 37, 5]), Stats { patches_failed: 1, ..Stats::default() });
}

#[test]
fn patches_of_overwritten_chunks_are_told_apart() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a40]");
    let mut entry = |chunk_id: u32, overwrites: bool| {
        if overwrites {
            bench.record("w2.0", 4096).record("w2.1", 4096);
        }
        difference(&mut bench, |bench| {
            let patch = [Patch { offset: 1, data: *b"aaaa" }];
            bench.buffer.patch(ProducerId(1), WriterId(1), chunk_id, patch.into_iter(), true);
        })
    };
    let failed = Stats { patches_failed: 1, ..Stats::default() };
    assert_eq!(entry(1, false), failed, "it has not come");
    assert_eq!(entry(0, true), Stats { patches_of_overwritten: 1, ..failed });
    assert_eq!(entry(1, false), failed, "it has not come");
}

#[test]
fn a_bad_patch_leaves_the_chunk_waiting() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a40]");
    let entry = [1, 37].map(|offset| Patch { offset, data: *b"aaaa" });
    assert!(!bench.buffer.patch(ProducerId(1), WriterId(1), 0, entry.into_iter(), false));
    assert_eq!(bench.read(), "");
}

#[test]
fn readaheads_are_packets_of_several_chunks() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b>]");
    let waits = difference(&mut bench, |bench| assert_eq!(bench.read(), "a"));
    assert_eq!((waits.readaheads_succeeded, waits.readaheads_failed), (0, 1));
    let waits = difference(&mut bench, |bench| assert_eq!(bench.read(), ""));
    assert_eq!((waits.readaheads_succeeded, waits.readaheads_failed), (0, 1), "each pass counts");
    bench.put("w1.1[<c]");
    let whole = difference(&mut bench, |bench| assert_eq!(bench.read(), "bc"));
    assert_eq!((whole.readaheads_succeeded, whole.readaheads_failed), (1, 0));
    bench.put("w1.2[d>] w1.3[e]");
    let broken = difference(&mut bench, |bench| assert_eq!(bench.read(), "e=33"));
    assert_eq!((broken.readaheads_succeeded, broken.readaheads_failed), (0, 1));
}

#[test]
fn violations_are_malformed_chunks_and_forbidden_repetitions() {
    let mut bench = Bench::ring();
    let violation = Stats { abi_violations: 1, ..Stats::default() };
    assert_eq!(difference(&mut bench, |bench| bench.raw(1, 0, 1, &[9])).abi_violations, 1);
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.record("w1.1", 4112);
        }),
        violation
    );
    bench.put("w2.0![a b] w3.0?[a b]pad128");
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w2.0![a]");
        }),
        violation,
        "smaller"
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w3.0[a b c100]");
        }),
        violation,
        "beyond what is reserved"
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w2.0?[a b c]");
        }),
        violation,
        "a flag is gone"
    );
}

#[test]
fn late_and_double_chunks_are_discarded() {
    let mut bench = Bench::ring();
    bench.put("w1.4[a]");
    bench.read();
    let discarded = Stats { chunks_discarded: 1, ..Stats::default() };
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.4[a]");
        }),
        discarded
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.3[a]");
        }),
        discarded
    );
    let mut bench = Bench::discard();
    bench.record("w1.0", 4096);
    let without_room = Stats { chunks_without_room: 1, ..discarded };
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.record("w1.1", 16);
        }),
        without_room
    );
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.record("w1.0", 4096);
        }),
        without_room,
        "nor when it is there"
    );
}

#[test]
fn drop_markers_are_losses_of_the_writer_and_no_violations() {
    let mut bench = Bench::ring();
    let marked = difference(&mut bench, |bench| {
        bench.put("w1.0[a32 %]");
    });
    assert_eq!(marked, Stats { trace_writer_packet_loss: 1, ..written(48) });
    // Refused chunks are not parsed.
    bench.read();
    assert_eq!(
        difference(&mut bench, |bench| {
            bench.put("w1.0[a32 %]");
        })
        .trace_writer_packet_loss,
        0
    );
}

#[test]
fn chunks_are_sampled_by_their_fragment_bytes() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a8] w1.1[b9] w1.2[c33]");
    let writer = bench.buffer.writers().next().unwrap();
    assert_eq!(writer.counts[..4], [1, 1, 1, 0]);
    assert_eq!(writer.sums[..4], [8, 9, 33, 0]);
}

#[test]
fn buckets_have_inclusive_limits_and_repetitions_are_sampled() {
    let mut bench = Bench::new(1024);
    for (id, limit) in (0..).zip(HISTOGRAM_LIMITS) {
        for bytes in [limit, limit + 1] {
            let packets = if bytes > 16 { format!("a{} b16", bytes - 16) } else { format!("a{bytes}") };
            bench.put(&format!("w1.{}[{packets}]", 2 * id + u32::from(bytes > limit)));
        }
    }
    bench.put("w1.0[a8]");
    let writer = bench.buffer.writers().next().unwrap();
    assert_eq!(writer.counts, [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    assert_eq!(writer.sums[0], 8 + 8);
    assert_eq!(writer.sums[10], 16385);
}

#[test]
fn a_clone_counts_its_own_reading() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b>] w1.1[<c] w1.2[d>] w1.4[e]");
    bench.read();
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    let expected =
        Stats { chunks_read: 0, bytes_read: 0, readaheads_succeeded: 0, readaheads_failed: 0, ..bench.stats() };
    assert_eq!(clone.stats(), expected);
    assert!(clone.buffer.writers().all(|writer| writer.counts.iter().sum::<u64>() == 0));
    clone.read();
    assert_eq!(bench.stats().chunks_written, 4);
}
