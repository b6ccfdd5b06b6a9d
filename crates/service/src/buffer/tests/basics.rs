//! Rows 1-20: sizes and wrapping.

use super::*;

#[test]
fn row_001_an_empty_buffer_has_no_packets() {
    assert_eq!(Bench::ring().read(), "");
}

#[test]
fn row_002_a_reader_that_keeps_up_gets_everything_and_leaves_no_padding() {
    let mut bench = Bench::new(64);
    for id in 0..1000 {
        bench.put(&format!("w1.{id}[a20]"));
        assert_eq!(bench.read(), "a");
    }
    let stats = bench.stats();
    assert_eq!((stats.chunks_read, stats.bytes_read), (stats.chunks_written, stats.bytes_written));
    assert_eq!(stats.padding_bytes_written, 0);
}

#[test]
fn row_003_ten_writers_in_order() {
    let mut bench = Bench::ring();
    for writer in 1..=10u8 {
        bench.put(&format!("w{writer}.0[{}16]", char::from(b'a' + writer)));
    }
    assert_eq!(bench.read(), "b c d e f g h i j k");
}

#[test]
fn row_004_exactly_full_four_times() {
    let mut bench = Bench::ring();
    for round in 0..4 {
        let ids: Vec<_> = (0..4).map(|i| round * 4 + i).collect();
        bench.put(&format!("w1.{}[a496] w1.{}[b496] w1.{}[c1008] w1.{}[d2032]", ids[0], ids[1], ids[2], ids[3]));
        assert_eq!(bench.read(), "a b c d");
    }
    assert_eq!(bench.stats().chunks_overwritten, 0);
}

#[test]
fn row_005_after_filling_exactly_nothing_wraps_yet() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 4096);
    assert_eq!(bench.stats().write_wrap_count, 0, "V1 counts one");
    assert_eq!((bench.buffer.write, bench.buffer.data.len()), (4096, 4096), "V1 is at 0");
}

#[test]
fn row_006_the_write_after_filling_exactly_wraps() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 4096).record("w1.1", 16);
    assert_eq!(bench.stats().write_wrap_count, 1);
}

#[test]
fn row_007_records_in_the_way_are_overwritten() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a112] w1.1[b240] w1.2[c496] w1.3[d1008] w1.4[e2032] w1.5[f496]");
    let stats = bench.stats();
    assert_eq!((stats.chunks_overwritten, stats.bytes_overwritten), (3, 896));
    assert_eq!(bench.read(), "d=65 e f");
}

#[test]
fn row_008_the_rest_after_the_new_record_becomes_padding() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a112] w1.1[b240] w1.2[c496] w1.3[d1008] w1.4[e2032] w1.5[f496]");
    assert_eq!(bench.stats().padding_bytes_written, 384, "128 bytes at the end were never used");
    bench.put("w1.6[g112]");
    assert_eq!(bench.stats().padding_bytes_cleared, 384);
}

#[test]
fn row_009_empty_chunks_and_exact_fits() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 2048).record("w1.1", 1024).record("w1.2", 1008).record("w1.3", 16);
    bench.put("w1.4[a2016] w1.5[b1024] w1.6[] w1.7[c992]");
    assert_eq!(bench.read(), "a=65 b c");
    assert_eq!(bench.read(), "");
    assert_eq!(bench.read(), "");
}

#[test]
fn row_010_packets_are_sorted_by_sequence() {
    for seed in 0..32u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut bench = Bench::new(1024);
        let mut next_ids = [0; 8];
        let mut expected = vec![Vec::new(); 8];
        for _ in 0..200 {
            let (writer, size) = (random(8), 18 + random(4079));
            let letter = char::from(b'a' + random(26) as u8);
            bench.put(&format!("w{}.{}[{letter}{}]", writer + 1, next_ids[writer], size - 16));
            next_ids[writer] += 1;
            expected[writer].push(letter.to_string());
        }
        assert_eq!(bench.read(), expected.concat().join(" "), "seed {seed}; V2 has the order of commits");
    }
}

#[test]
fn row_011_read_chunks_make_room() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a4064]");
    assert_eq!(bench.read(), "a");
    bench.put("w1.1[] w1.2[b2032] w1.3[c2032]");
    assert_eq!(bench.read(), "b c");
}

#[test]
fn row_012_a_wrap_that_covers_one_record_and_a_write_that_covers_the_rest() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a2032] w1.1[b2032] w1.2[c2032] w1.3[d3056]");
    assert_eq!(bench.read(), "d=65", "V1 marks it 1");
    assert_eq!(bench.buffer.sequences.iter().map(|sequence| sequence.chunks().len()).sum::<usize>(), 0);
}

#[test]
fn row_013_two_large_ones_over_eight_small_ones() {
    let mut bench = Bench::ring();
    for id in 0..8 {
        bench.record(&format!("w1.{id}"), 512);
    }
    bench.put("w1.8[b2064] w1.9[c3088]");
    assert_eq!(bench.read(), "c=65");
}

#[test]
fn row_014_sixteen_bytes_of_padding_between_records() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a20] w1.1[b4032] w1.2[c16]");
    assert_eq!(bench.stats().padding_bytes_written, 16);
    assert_eq!(bench.read(), "b=65 c");
}

#[test]
fn row_015_empty_packets_are_not_returned() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a42 e1 b42]");
    assert_eq!(bench.read(), "a b");
    assert_eq!(bench.stats().abi_violations, 0);
}

#[test]
fn row_016_the_last_four_of_six() {
    let mut bench = Bench::ring();
    for (writer, letter) in (1..=6).zip("abcdef".chars()) {
        bench.put(&format!("w{writer}.0[{letter}1008]"));
    }
    assert_eq!(bench.read(), "c d e f");
}

#[test]
fn row_017_wraps_are_counted_when_a_write_does_not_fit() {
    let mut bench = Bench::ring();
    bench.record("w1.0", 2048).record("w1.1", 2048);
    assert_eq!(bench.stats().write_wrap_count, 0);
    bench.record("w1.2", 3072);
    assert_eq!(bench.stats().write_wrap_count, 1);
    bench.record("w1.3", 2048);
    assert_eq!(bench.stats().write_wrap_count, 2);
}

#[test]
fn row_018_a_chunk_larger_than_the_buffer_is_refused() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a4096]");
    assert_eq!(bench.stats().abi_violations, 1);
    assert_eq!(bench.read(), "");
}

#[test]
fn row_019_a_payload_may_have_65535_bytes() {
    let mut bench = Bench::new(1024);
    for (id, len) in [(0, 65504), (1, 65505), (2, 65535)] {
        bench.raw(1, id, 1, &padded(b'a', len));
    }
    assert_eq!((bench.stats().abi_violations, bench.stats().chunks_written), (0, 3), "V1 ends at 65504");
    bench.raw(1, 3, 1, &padded(b'a', 65536));
    assert_eq!((bench.stats().abi_violations, bench.stats().chunks_written), (1, 3));
    assert_eq!(bench.read(), "a a a");
}

#[test]
fn row_020_the_first_survivor_tells_of_the_overwriting() {
    let mut bench = Bench::ring();
    for id in 0..16 {
        bench.put(&format!("w1.{id}[a400]"));
    }
    let read = bench.read();
    assert!(read.starts_with("a=65 a a"), "{read}");
    assert_eq!(read.matches('=').count(), 1);
}

#[test]
fn sizes_are_rounded_up_and_bounded() {
    assert_eq!(CentralBuffer::new(1, FillPolicy::Ring).unwrap().size_bytes(), 4096);
    assert_eq!(CentralBuffer::new(5, FillPolicy::Ring).unwrap().size_bytes(), 8192);
    assert_eq!(CentralBuffer::new(0, FillPolicy::Ring).err(), Some(AllocateError::Size { size_kb: 0 }));
    let size_kb = MAX_SIZE_KB + 1;
    assert_eq!(CentralBuffer::new(size_kb, FillPolicy::Ring).err(), Some(AllocateError::Size { size_kb }));
}

#[test]
fn sequences_come_in_the_order_of_producer_and_writer() {
    let mut bench = Bench::ring();
    bench.put("w2.0[a] p2w1.0[b] w1.0[c] w2.1[d]");
    assert_eq!(bench.read(), "c a d b");
}

/// A payload of so many bytes with one packet that fills it.
fn padded(letter: u8, len: usize) -> Vec<u8> {
    let content = len - 3;
    let mut payload = vec![content as u8 & 0x7f | 0x80, (content >> 7) as u8 & 0x7f | 0x80, (content >> 14) as u8];
    payload.resize(len, letter);
    payload
}
