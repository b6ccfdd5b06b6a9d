//! The table of `docs/spec/trace-buffer.md §20`, as far as it speaks of V2, each case under its number.
//!
//! Chunks are written as there: `p2w1.0?![<a20 b30>]` is producer 2, writer 1, chunk 0, still being written, in need of
//! patches; its first packet continues one before and takes 20 bytes with its size field, its last continues.
//! A number missing after a letter is 32. `pad512` makes the chunk's record 512 bytes.
//! What was read is written `a bc d=65`: packet `bc` of two fragments, and loss bits 65 on `d`.

use super::*;

struct Bench {
    buffer: CentralBuffer,
}

impl Bench {
    fn new(size_kb: u32) -> Self {
        Self { buffer: CentralBuffer::new(size_kb, FillPolicy::Ring).unwrap() }
    }

    fn ring() -> Self {
        Self::new(4)
    }

    fn discard() -> Self {
        Self { buffer: CentralBuffer::new(4, FillPolicy::Discard).unwrap() }
    }

    /// Commits chunks in the notation.
    fn put(&mut self, chunks: &str) -> &mut Self {
        for chunk in Text::parse_all(chunks) {
            chunk.commit(&mut self.buffer);
        }
        self
    }

    /// Commits one chunk with one packet, of a record of `size` bytes.
    fn record(&mut self, name: &str, size: usize) -> &mut Self {
        let packet = if size == 16 { String::new() } else { format!("z{}", size - 16) };
        self.put(&format!("{name}[{packet}]"))
    }

    fn raw(&mut self, writer: u16, chunk_id: u32, count: u16, payload: &[u8]) {
        let header = ChunkHeader { writer_id: writer, chunk_id, count, flags: 0 };
        let identity = Identity::default();
        self.buffer.copy(&Chunk { producer: ProducerId(1), identity, header, complete: true, payload });
    }

    fn patch(&mut self, writer: u16, chunk_id: u32, offset: u32, data: &[u8; 4], more: bool) -> bool {
        let patch = Patch { offset, data: *data };
        self.buffer.patch(ProducerId(1), WriterId(writer), chunk_id, [patch].into_iter(), more)
    }

    fn unblock(&mut self, writer: u16, chunk_id: u32) {
        assert!(self.buffer.patch(ProducerId(1), WriterId(writer), chunk_id, [].into_iter(), false));
    }

    /// Reads up to `limit` packets in a new pass.
    fn read_some(&mut self, limit: usize) -> String {
        self.buffer.begin_read();
        self.go_on(limit)
    }

    fn go_on(&mut self, limit: usize) -> String {
        let mut packets = Vec::new();
        while packets.len() < limit {
            let Some(packet) = self.buffer.next_packet() else { break };
            let mut text = String::new();
            for slice in packet.slices() {
                let letter = slice[0];
                if letter.is_ascii_alphabetic() {
                    let rest = slice.iter().filter(|&&byte| byte != letter).count();
                    assert!(rest == 0 || packet.producer.0 > 100, "foreign bytes in {letter}");
                }
                text.push(char::from(letter));
            }
            if packet.loss != 0 {
                text = format!("{text}={}", packet.loss);
            }
            packets.push(text);
        }
        packets.join(" ")
    }

    fn read(&mut self) -> String {
        self.read_some(usize::MAX)
    }

    fn stats(&self) -> Stats {
        *self.buffer.stats()
    }
}

struct Text {
    producer: u16,
    header: ChunkHeader,
    complete: bool,
    payload: Vec<u8>,
}

impl Text {
    fn parse_all(text: &str) -> Vec<Self> {
        let mut chunks = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find(']').expect("a chunk ends with ]") + 1;
            let pad = rest[end..].trim_start().strip_prefix("pad").map(|rest| {
                let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                (rest[..digits].parse::<usize>().unwrap(), &rest[digits..])
            });
            chunks.push(Self::parse(&rest[..end], pad.map(|(size, _)| size)));
            rest = pad.map_or(&rest[end..], |(_, rest)| rest).trim_start();
        }
        chunks
    }

    fn parse(text: &str, pad: Option<usize>) -> Self {
        let (name, packets) = text.trim_end_matches(']').split_once('[').unwrap();
        let mut header = ChunkHeader::default();
        let complete = !name.contains('?');
        if name.contains('!') {
            header.flags |= 4;
        }
        let (writer, id) = name.trim_end_matches(['?', '!']).split_once('.').unwrap();
        let (producer, writer) = match writer.strip_prefix('p') {
            Some(rest) => rest.split_once('w').map(|(p, w)| (p.parse().unwrap(), w)).unwrap(),
            None => (1, writer.strip_prefix('w').unwrap()),
        };
        header.writer_id = writer.parse().unwrap();
        header.chunk_id = id.parse().unwrap();
        let mut payload = Vec::new();
        for packet in packets.split_whitespace() {
            if packet.starts_with('<') {
                header.flags |= 1;
            }
            if packet.ends_with('>') {
                header.flags |= 2;
            }
            let packet = packet.trim_matches(['<', '>']);
            header.count += 1;
            let letter = packet.as_bytes()[0];
            if letter == b'%' {
                payload.extend_from_slice(b"\xff\xff\xff\x7f");
                continue;
            }
            let space: usize = if packet.len() > 1 { packet[1..].parse().unwrap() } else { 32 };
            let len = match space {
                0..=128 => space - 1,
                129..=16385 => space - 2,
                _ => space - 3,
            };
            let mut size = len;
            while size >= 0x80 {
                payload.push(size as u8 | 0x80);
                size >>= 7;
            }
            payload.push(size as u8);
            payload.extend(std::iter::repeat_n(letter, len));
        }
        if let Some(pad) = pad {
            payload.resize(pad - 16, 0);
        }
        Self { producer, header, complete, payload }
    }

    fn commit(&self, buffer: &mut CentralBuffer) {
        let identity = Identity { uid: i32::from(self.producer) * 11, ..Identity::default() };
        buffer.copy(&Chunk {
            producer: ProducerId(self.producer),
            identity,
            header: self.header,
            complete: self.complete,
            payload: &self.payload,
        });
    }
}

mod basics {
    use super::*;

    #[test]
    fn case_1_an_empty_buffer_has_no_packets() {
        assert_eq!(Bench::ring().read(), "");
    }

    #[test]
    fn case_2_a_reader_that_keeps_up_gets_everything_and_leaves_no_padding() {
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
    fn case_3_ten_writers_in_order() {
        let mut bench = Bench::ring();
        for writer in 1..=10u8 {
            bench.put(&format!("w{writer}.0[{}16]", char::from(b'a' + writer)));
        }
        assert_eq!(bench.read(), "b c d e f g h i j k");
    }

    #[test]
    fn case_4_exactly_full_four_times() {
        let mut bench = Bench::ring();
        for round in 0..4 {
            let ids: Vec<_> = (0..4).map(|i| round * 4 + i).collect();
            bench.put(&format!("w1.{}[a496] w1.{}[b496] w1.{}[c1008] w1.{}[d2032]", ids[0], ids[1], ids[2], ids[3]));
            assert_eq!(bench.read(), "a b c d");
        }
        assert_eq!(bench.stats().chunks_overwritten, 0);
    }

    #[test]
    fn case_6_and_17_wrapping_is_counted_when_a_write_does_not_fit() {
        let mut bench = Bench::ring();
        bench.record("w1.0", 2048).record("w1.1", 2048);
        assert_eq!(bench.stats().write_wrap_count, 0);
        bench.record("w1.2", 3072);
        assert_eq!(bench.stats().write_wrap_count, 1);
        bench.record("w1.3", 2048);
        assert_eq!(bench.stats().write_wrap_count, 2);
    }

    #[test]
    fn case_7_and_8_what_is_in_the_way_is_overwritten() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a112] w1.1[b240] w1.2[c496] w1.3[d1008] w1.4[e2032] w1.5[f496]");
        let stats = bench.stats();
        assert_eq!((stats.chunks_overwritten, stats.bytes_overwritten), (3, 896));
        assert_eq!(stats.padding_bytes_written, 384);
        assert_eq!(bench.read(), "d=65 e f");
        bench.put("w1.6[g112]");
        assert_eq!(bench.stats().padding_bytes_cleared, 384);
    }

    #[test]
    fn case_9_empty_chunks_and_exact_fits() {
        let mut bench = Bench::ring();
        bench.record("w1.0", 2048).record("w1.1", 1024).record("w1.2", 1008).record("w1.3", 16);
        bench.put("w1.4[a2016] w1.5[b1024] w1.6[] w1.7[c992]");
        assert_eq!(bench.read(), "a=65 b c");
        assert_eq!(bench.read(), "");
        assert_eq!(bench.read(), "");
    }

    #[test]
    fn case_11_read_chunks_make_room() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a4064]");
        assert_eq!(bench.read(), "a");
        bench.put("w1.1[] w1.2[b2032] w1.3[c2032]");
        assert_eq!(bench.read(), "b c");
    }

    #[test]
    fn case_14_sixteen_bytes_of_padding_between_records() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a20] w1.1[b4032] w1.2[c16]");
        assert_eq!(bench.stats().padding_bytes_written, 16);
        assert_eq!(bench.read(), "b=65 c");
    }

    #[test]
    fn case_15_empty_packets_are_not_returned() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a42 e1 b42]");
        assert_eq!(bench.read(), "a b");
        assert_eq!(bench.stats().abi_violations, 0);
    }

    #[test]
    fn case_16_the_last_four_of_six() {
        let mut bench = Bench::ring();
        for (writer, letter) in (1..=6).zip("abcdef".chars()) {
            bench.put(&format!("w{writer}.0[{letter}1008]"));
        }
        assert_eq!(bench.read(), "c d e f");
    }

    #[test]
    fn case_18_a_chunk_larger_than_the_buffer_is_refused() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a4096]");
        assert_eq!(bench.stats().abi_violations, 1);
        assert_eq!(bench.read(), "");
    }

    #[test]
    fn case_20_the_first_survivor_tells_of_the_overwriting() {
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
    fn sequences_are_interleaved_by_commit_order() {
        let mut bench = Bench::ring();
        bench.put("w2.0[a] p2w1.0[b] w1.0[c] w2.1[d]");
        assert_eq!(bench.read(), "a b c d");
    }
}

mod fragments {
    use super::*;

    #[test]
    fn case_21_orphans_at_the_start_and_open_ends() {
        let mut bench = Bench::ring();
        bench.put("w1.0[<a10 b20 c30 d10>] w1.1[<e20 f30]");
        assert_eq!(bench.read(), "b=9 c de f");
    }

    #[test]
    fn case_22_a_packet_waits_for_its_end() {
        let mut bench = Bench::ring();
        bench.put("w1.0[<a2] w1.1[b2>]");
        assert_eq!(bench.read(), "");
        bench.put("w1.2[<c2]");
        assert_eq!(bench.read(), "bc=9");
    }

    #[test]
    fn case_23_packets_over_many_chunks() {
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
    fn case_24_a_packet_over_the_wrap_of_chunk_ids() {
        let mut bench = Bench::ring();
        bench.put("w1.4294967294[a>] w1.4294967295[<b>] w1.0[<c>] w1.1[<d>] w1.2[<e]");
        assert_eq!(bench.read(), "abcde");
    }

    #[test]
    fn case_25_to_28_chunks_without_fragments_are_skipped() {
        let mut bench = Bench::ring();
        bench.put("w1.0[] w1.1[a10 b20>] w1.2[<c30 d40>]");
        assert_eq!(bench.read(), "a bc");

        let mut bench = Bench::ring();
        bench.put("w1.0[a10 b10>] w1.1[]");
        assert_eq!(bench.read(), "a");

        let mut bench = Bench::ring();
        bench.put("w1.0[a10>] w1.1[] w1.2[<b10 c20]");
        assert_eq!(bench.read(), "ab c");

        let mut bench = Bench::ring();
        bench.put("w1.0[a>] w1.1[] w1.2[<b>] w1.3[] w1.4[<c]");
        assert_eq!(bench.read(), "abc");
    }

    #[test]
    fn case_29_two_producers_with_the_same_writer_id() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a10 b10>] p2w1.0[c10 d10] w1.1[<e10 f10]");
        bench.buffer.begin_read();
        let mut uids = Vec::new();
        while let Some(packet) = bench.buffer.next_packet() {
            uids.push((packet.slices().next().unwrap()[0], packet.identity.uid));
        }
        assert_eq!(uids, [(b'a', 11), (b'b', 11), (b'c', 22), (b'd', 22), (b'f', 11)]);
    }

    #[test]
    fn case_30_an_aborted_continuation_is_lost_and_named() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a10 b10>] w1.1[<%] w1.2[d10]");
        assert_eq!(bench.read(), "a d=129");
        let stats = bench.stats();
        assert_eq!((stats.trace_writer_packet_loss, stats.abi_violations), (1, 0));
    }

    #[test]
    fn case_31_a_loss_of_the_writer_is_counted_before_any_read() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a10 %]");
        assert_eq!(bench.stats().trace_writer_packet_loss, 1);
        assert_eq!(bench.read(), "a");
        bench.put("w1.1[b]");
        assert_eq!(bench.read(), "b=129", "attributed behind the packets in front of the loss");
    }

    #[test]
    fn case_32_a_chunk_at_the_very_end_of_the_buffer_inside_a_packet() {
        let mut bench = Bench::ring();
        bench.put("p2w1.0[x2032] w1.0[a2032>] w1.1[<b100>] w1.2[<c]");
        assert_eq!(bench.read(), "abc");
    }

    #[test]
    fn case_33_an_orphan() {
        let mut bench = Bench::ring();
        bench.put("w1.0[<a32] w1.1[b32]");
        assert_eq!(bench.read(), "b=9");
    }

    #[test]
    fn case_34_a_broken_chain() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a32>] w1.1[b32]");
        assert_eq!(bench.read(), "b=33");
    }

    #[test]
    fn case_36_a_missing_middle() {
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
}

mod order {
    use super::*;

    #[test]
    fn case_38_chunks_out_of_order() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a] w1.2[c] w1.1[b]");
        assert_eq!(bench.read(), "a b c");
        assert_eq!(bench.stats().chunks_committed_out_of_order, 1);
    }

    #[test]
    fn case_39_fragments_out_of_order() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a>] w1.2[<c] w1.1[<b>]");
        assert_eq!(bench.read(), "abc");
    }

    #[test]
    fn case_45_gaps_are_marked_at_once() {
        let mut bench = Bench::ring();
        bench.put("w1.1[a] w1.3[b] w1.4[c] w1.6[d]");
        assert_eq!(bench.read(), "a b=3 c d=3");
    }

    #[test]
    fn case_46_gaps_between_passes() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.1[a]").read(), "a");
        assert_eq!(bench.put("w1.2[a]").read(), "a");
        assert_eq!(bench.put("w1.4[a]").read(), "a=3");
        assert_eq!(bench.put("w1.5[a]").read(), "a");
    }

    #[test]
    fn case_47_a_sequence_outlives_its_chunks() {
        let mut bench = Bench::ring();
        let fill = |bench: &mut Bench, first: u32| {
            for id in first..first + 8 {
                bench.put(&format!("p2w1.{id}[x1008]"));
            }
            bench.read();
        };
        assert_eq!(bench.put("w1.1[a]").read(), "a");
        fill(&mut bench, 0);
        assert_eq!(bench.put("w1.2[a]").read(), "a");
        fill(&mut bench, 8);
        assert_eq!(bench.put("w1.4[a]").read(), "a=3");
    }

    #[test]
    fn case_49_gaps_over_the_wrap_of_chunk_ids() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.4294967294[a]").read(), "a");
        assert_eq!(bench.put("w1.4294967295[a] w1.0[b]").read(), "a b");
        assert_eq!(bench.put("w1.3[a]").read(), "a=3");
    }

    #[test]
    fn case_50_a_chunk_after_its_successor_was_read_is_refused() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a]").read(), "a");
        assert_eq!(bench.put("w1.2[c]").read(), "c=3");
        assert_eq!(bench.put("w1.1[b]").read(), "");
        assert_eq!(bench.stats().chunks_discarded, 1);
    }

    #[test]
    fn case_51_sequences_without_chunks_are_forgotten_in_the_end() {
        let mut bench = Bench::new(64);
        for writer in 1..=1153 {
            bench.put(&format!("w{writer}.5[a]"));
        }
        bench.read();
        bench.put("p2w1.0[b]");
        assert_eq!(bench.buffer.sequences.len(), 1025);
        // A forgotten one starts fresh, a kept one knows its duplicates.
        assert_eq!(bench.read(), "b");
        assert_eq!(bench.put("w1.5[a] w1153.5[a]").read(), "a");
        assert_eq!(bench.stats().chunks_discarded, 1);
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
}

mod again {
    use super::*;

    #[test]
    fn case_56_a_scraped_chunk_is_completed() {
        let mut bench = Bench::ring();
        bench.put("w1.0?[a100 b100]pad512 w1.0[a100 b100 c d]");
        assert_eq!(bench.read(), "a b c d");
        assert_eq!(bench.stats().chunks_rewritten, 1);
    }

    #[test]
    fn case_57_and_58_what_was_read_is_not_returned_again() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        assert_eq!(bench.put("w1.0[a b c d]").read(), "b c d");

        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a20 b30 _5]pad512").read(), "a b");
        assert_eq!(bench.put("w1.0[a20 b30 c d]").read(), "c d");
    }

    #[test]
    fn case_60_a_complete_chunk_that_was_read_is_refused() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a b]").read(), "a b");
        assert_eq!(bench.put("w1.0[a b c]").read(), "");
        assert_eq!(bench.stats().chunks_discarded, 1);
    }

    #[test]
    fn case_61_other_content_is_ignored() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a b] w1.1[c d]").read_some(3), "a b c");
        assert_eq!(bench.put("w1.0[x32 y32 z32]").read(), "d");
    }

    #[test]
    fn case_62_and_63_the_successor_waits_for_the_completion() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        assert_eq!(bench.put("w1.1[d e] w1.0[a b c]").read(), "b c d e");

        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        assert_eq!(bench.put("w1.1[<d e] w1.0[a b c>]").read(), "b cd e");
    }

    #[test]
    fn case_64_and_65_identical_commits_count_once() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a] w1.0[a] w1.1[b]").read(), "a b");

        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a]").read(), "a");
        assert_eq!(bench.put("w1.0[a] w1.1[b]").read(), "b");
    }

    #[test]
    fn case_66_and_67_an_open_chunk_blocks_its_sequence() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad128").read(), "a");
        assert_eq!(bench.put("w1.1[c d]").read(), "");
        assert_eq!(bench.put("w1.0[a b]").read(), "b c d");

        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b>]pad128").read(), "a");
        assert_eq!(bench.put("w1.1[<c d] w1.0[a b>]").read(), "bc d");
    }

    #[test]
    fn case_68_a_padded_chunk_is_completed() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad2048").read(), "a");
        assert_eq!(bench.put("w1.0[a b]").read(), "b");
    }

    #[test]
    fn case_69_and_70_the_last_fragment_and_its_flags_are_not_trusted() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?![a20 b30>]").read(), "a");
        assert_eq!(bench.put("w2.0?[a]").read(), "");
    }

    #[test]
    fn case_71_an_incomplete_chunk_can_be_overwritten() {
        let mut bench = Bench::ring();
        bench.put("w1.1[a1008] w1.2?[b504 b504] w1.3[c1008] w1.4[d1008] w1.5[e1008] w1.6[f1008]");
        assert_eq!(bench.read(), "c=65 d e f");
    }

    #[test]
    fn case_72_the_same_scrape_again() {
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
    fn case_73_scraped_again_after_it_was_overwritten() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b>]pad256").read(), "a");
        overwrite(&mut bench);
        assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "b");
    }

    #[test]
    fn case_74_completed_after_it_was_overwritten() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b c>]pad256").read(), "a b");
        overwrite(&mut bench);
        assert_eq!(bench.put("w1.0[a b c>] w1.1[<d e]").read(), "cd e");
    }

    #[test]
    fn case_75_a_complete_one_is_not_taken_again() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a b c]").read(), "a b c");
        overwrite(&mut bench);
        assert_eq!(bench.put("w1.0[a b c d]").read(), "");
    }

    #[test]
    fn case_76_a_completed_chunk_moves_to_the_newest_place() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a32 b32]pad512").read(), "a");
        bench.put("p2w1.0[x3568]");
        bench.put("w1.0[a32 b32 c64>] p3w1.0[y] w1.1[<d e]");
        assert_eq!((bench.stats().chunks_relocated, bench.stats().write_wrap_count), (1, 1));
        assert_eq!(bench.read(), "x b cd y e");
    }

    #[test]
    fn case_77_a_growing_chunk_that_is_unread_stays() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        bench.put("w1.0?[a b c]pad512 w1.0[a b c d]");
        let stats = bench.stats();
        assert_eq!((stats.chunks_rewritten, stats.chunks_relocated), (2, 0));
        assert_eq!(bench.read(), "b c d");
    }

    #[test]
    fn case_78_in_a_discard_buffer_nothing_moves() {
        let mut bench = Bench::discard();
        assert_eq!(bench.put("w1.0?[a32 b32]pad512").read(), "a");
        bench.put("p2w1.0[x3568] w1.0[a32 b32 c64]");
        let stats = bench.stats();
        assert_eq!((stats.chunks_rewritten, stats.chunks_relocated, stats.chunks_discarded), (1, 0, 0));
        assert_eq!(bench.read(), "b c x");
    }

    #[test]
    fn case_79_the_continuation_was_there_first() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        bench.put("w1.1[<d e] w1.0[a b c>]");
        assert_eq!(bench.stats().chunks_relocated, 1);
        assert_eq!(bench.read(), "b cd e");
    }

    #[test]
    fn case_80_a_full_ring_with_a_read_open_chunk() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0?[a b]pad512").read(), "a");
        bench.put("p2w1.0[x1776] p2w1.1[y1776] w1.0[a b c]");
        assert_eq!(bench.read(), "x y b c");
    }

    #[test]
    fn case_81_a_late_completion() {
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

    #[test]
    fn moving_a_chunk_that_overwrites_its_own_successor_reports_the_loss() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("p2w1.0[x512] w1.0?[a b]pad512").read(), "x a");
        bench.put("p2w1.1[y3008]");
        // w1.1 goes to the start; the completed w1.0 is then written behind it, and so on around the ring.
        bench.put("w1.1[d496] w1.2[e496]");
        bench.put("w1.0[a b c]");
        let read = bench.read();
        assert!(read.contains("e") && !read.contains('a'), "{read}");
    }
}

mod patches {
    use super::*;

    #[test]
    fn case_82_and_84_patches_are_applied() {
        let mut bench = Bench::ring();
        let mut middle = vec![14, b'm', b'm', b'm', b'm'];
        middle.extend_from_slice(&[0; 4]);
        middle.extend_from_slice(b"mmmmmm");
        bench.put("w1.0[a>]");
        let header = ChunkHeader { writer_id: 1, chunk_id: 1, count: 1, flags: 7 };
        let identity = Identity { uid: 11, ..Identity::default() };
        bench.buffer.copy(&Chunk { producer: ProducerId(1), identity, header, complete: true, payload: &middle });
        bench.put("w1.2[<c]");
        assert_eq!(bench.read(), "");
        assert!(bench.patch(1, 1, 1, b"nnnn", true));
        assert!(bench.patch(1, 1, 11, b"oooo", true));
        assert_eq!(bench.read(), "");
        assert!(bench.patch(1, 1, 5, b"pppp", false));
        bench.buffer.begin_read();
        let packet = bench.buffer.next_packet().unwrap();
        assert_eq!(packet.slices().nth(1).unwrap(), b"nnnnppppmmoooo");
        assert_eq!(bench.stats().patches_succeeded, 3);
    }

    #[test]
    fn case_83_patches_without_a_chunk_fail() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a20]");
        assert!(!bench.patch(2, 0, 5, b"xxxx", false));
        assert!(!bench.patch(1, 1, 5, b"xxxx", false));
        assert!(!bench.patch(1, u32::MAX, 5, b"xxxx", false));
        assert_eq!(bench.stats().patches_failed, 3);
        assert_eq!(bench.read(), "a");
    }

    #[test]
    fn case_85_and_86_sequences_wait_on_their_own() {
        let mut bench = Bench::ring();
        bench.put("w1.0![a>] w1.1[<b] w2.0[c] w2.1![d>] w2.2[<e] w3.0![f]");
        assert_eq!(bench.read(), "c");
        bench.unblock(2, 1);
        assert_eq!(bench.read(), "de");
        assert!(bench.buffer.patch(ProducerId(1), WriterId(3), 0, [].into_iter(), true));
        assert_eq!(bench.read(), "");
        bench.unblock(3, 0);
        assert_eq!(bench.read(), "f");
    }

    #[test]
    fn case_87_only_the_last_packet_of_a_chunk_waits() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0![x10 a100>]").read(), "x");
    }

    #[test]
    fn case_89_patches_in_any_order_of_chunks() {
        let mut bench = Bench::ring();
        bench.put("w1.0![a>] w1.1![<b>] w1.2[<c]");
        bench.unblock(1, 1);
        assert_eq!(bench.read(), "");
        bench.unblock(1, 0);
        assert_eq!(bench.read(), "abc");
    }

    #[test]
    fn case_90_an_unpatched_packet_is_overwritten_whole() {
        let mut bench = Bench::ring();
        bench.put("w1.0![a1024>] w1.1[<b1024] w1.2[c2000] w1.3[d2000]");
        assert_eq!(bench.read(), "c=65 d");
    }

    #[test]
    fn case_91_offsets_out_of_range_touch_nothing() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a16] w2.0[b]");
        for offset in [13, 16, u32::MAX - 3, u32::MAX - 1024, u32::MAX] {
            assert!(!bench.patch(1, 0, offset, b"xxxx", false), "{offset}");
        }
        assert_eq!(bench.read(), "a b");
    }

    #[test]
    fn case_92_the_commit_wins_over_patches_of_the_scraped_copy() {
        let mut bench = Bench::ring();
        bench.put("w1.0?[a b]pad512");
        assert!(bench.patch(1, 0, 4, b"xxxx", false));
        bench.put("w1.0[a b]");
        assert_eq!(bench.read(), "a b");
    }
}

mod malicious {
    use super::*;

    #[test]
    fn case_93_to_95_counts_that_lie() {
        let mut bench = Bench::ring();
        bench.put("w9.0[y]");
        bench.raw(1, 0, 1, &[0]);
        bench.raw(2, 0, 3, &[2, b'a', b'a']);
        bench.raw(3, 0, 1, &[]);
        bench.raw(4, 0, 3, &[0, 0xff, 0xff, 0xff]);
        bench.put("w9.1[z]");
        assert_eq!(bench.read(), "y a z");
        assert_eq!(bench.stats().abi_violations, 3);
        bench.put("w2.1[b]");
        assert_eq!(bench.read(), "b=5", "the next packet says that the chunk was corrupted");
    }

    #[test]
    fn case_96_a_truncated_size_at_the_end() {
        let mut bench = Bench::ring();
        let mut payload = vec![0xed, 0x1f];
        payload.resize(2 + 4077, b'a');
        payload.push(0x82);
        payload.truncate(4080);
        bench.raw(1, 0, 2, &payload);
        assert_eq!(bench.read(), "a");
    }

    #[test]
    fn case_97_broken_sizes() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a]");
        bench.raw(1, 1, 1, &[4, b'x', b'x', b'x']);
        bench.raw(1, 2, 1, &[0xff, 0xff, 0xff, 0x7f]);
        let mut long = vec![0xff; 111];
        long.push(0x7f);
        bench.raw(1, 3, 1, &long);
        bench.put("w1.4[b]");
        assert_eq!(bench.read(), "a b=133");
    }

    #[test]
    fn case_98_nothing_but_ones() {
        let mut bench = Bench::new(256);
        for id in 0..3 {
            bench.raw(1, id, 1023, &vec![0xff; 65535]);
        }
        bench.raw(1, 3, 1023, &vec![0xff; 65536]);
        assert_eq!(bench.read(), "");
    }

    #[test]
    fn case_99_and_100_empty_fragments_inside_a_packet() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a>] w1.1[<e1>] w1.2[<c]");
        assert_eq!(bench.read(), "ac");

        let mut bench = Bench::ring();
        bench.put("w1.0[x e1>] w1.1[<c]");
        assert_eq!(bench.read(), "x c");
    }

    #[test]
    fn case_101_a_shorter_repetition_is_ignored() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a b] w1.0[x10]");
        assert_eq!(bench.read(), "a b");
        bench.put("w1.0[x10] w1.1[c]");
        assert_eq!(bench.read(), "c");
    }

    #[test]
    fn case_102_other_boundaries_after_reading() {
        let mut bench = Bench::ring();
        assert_eq!(bench.put("w1.0[a32 b32]").read_some(1), "a");
        bench.put("w1.0[x50 y14] w1.1[c]");
        assert_eq!(bench.read(), "b c");
    }

    #[test]
    fn case_103_writer_zero() {
        Bench::ring().put("w0.0[a]").read();
    }

    #[test]
    fn patches_may_break_sizes_but_nothing_else() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a b] w2.0[z]");
        assert!(bench.patch(1, 0, 0, b"\xff\xff\xff\xff", false));
        bench.put("w1.1[c]");
        assert_eq!(bench.read(), "z c=5");
    }
}

mod discard {
    use super::*;

    #[test]
    fn case_105_what_does_not_fit_closes_the_buffer() {
        let mut bench = Bench::discard();
        bench.put("w1.0[a16] w1.1[b3984]");
        assert_eq!(bench.read_some(1), "a");
        bench.put("w1.2[c4] w1.3[d32]");
        assert_eq!(bench.read(), "b c");
        bench.put("w1.4[]");
        assert_eq!(bench.stats().chunks_discarded, 2);
    }

    #[test]
    fn case_106_filled_exactly() {
        let mut bench = Bench::discard();
        bench.record("w1.0", 2048).record("w1.1", 2048).record("w1.2", 32);
        assert_eq!(bench.read(), "z z");
        assert_eq!(bench.stats().chunks_discarded, 1);
    }

    #[test]
    fn case_107_a_packet_whose_end_was_refused() {
        let mut bench = Bench::discard();
        bench.put("w2.0[x] w1.0[a b2000>] w2.1[y] w1.1[<c2000 d] w2.2[z]");
        assert_eq!(bench.read(), "x a y");
    }

    #[test]
    fn patches_are_accepted_when_it_is_closed() {
        let mut bench = Bench::discard();
        bench.put("w1.0![a4000] w1.1[b1000]");
        bench.unblock(1, 0);
        assert_eq!(bench.read(), "a");
    }
}

mod counting {
    use super::*;

    #[test]
    fn case_108_and_109_a_read_packet_is_not_overwritten() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a]");
        assert_eq!(bench.read_some(1), "a");
        bench.put("w2.0[x4080]");
        assert_eq!(bench.stats().chunks_overwritten, 0);

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
    fn case_110_a_packet_over_three_chunks() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a496>] w1.1[<b496>] w1.2[<c496]");
        assert_eq!(bench.read(), "abc");
        bench.put("w2.0[x4080]");
        assert_eq!((bench.stats().bytes_read, bench.stats().chunks_overwritten), (1536, 0));
    }

    #[test]
    fn case_111_an_unpatched_packet_over_two_chunks() {
        let mut bench = Bench::ring();
        bench.put("w1.0![a1008>] w1.1[<b1008] w2.0[x1008] w2.1[x1008]");
        assert_eq!(bench.read_some(0), "");
        bench.put("w2.2[y1008]");
        assert_eq!((bench.stats().chunks_overwritten, bench.stats().bytes_overwritten), (2, 2048));
    }

    #[test]
    fn case_112_a_reader_that_keeps_up_loses_nothing() {
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

    #[test]
    fn chunks_are_sampled_by_their_fragment_bytes() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a8] w1.1[b9] w1.2[c33]");
        let writer = bench.buffer.writers().next().unwrap();
        assert_eq!(writer.counts[..4], [1, 1, 1, 0]);
        assert_eq!(writer.sums[..4], [8, 9, 33, 0]);
    }
}

mod clones {
    use super::*;

    #[test]
    fn case_113_what_was_read_is_not_in_the_clone() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a] w1.1[b] w1.2[c]");
        assert_eq!(bench.read_some(2), "a b");
        let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
        assert_eq!(clone.read(), "c");
        assert_eq!(bench.read(), "c");
    }

    #[test]
    fn case_114_before_and_after_a_missing_chunk() {
        let mut bench = Bench::ring();
        bench.put("w1.0[a] w1.2[c]");
        let mut early = Bench { buffer: bench.buffer.try_clone().unwrap() };
        bench.put("w1.1[b]");
        let mut late = Bench { buffer: bench.buffer.try_clone().unwrap() };
        assert_eq!(early.read(), "a c=3");
        assert_eq!(late.read(), "a b c");
    }

    #[test]
    fn case_116_a_wrapped_buffer() {
        let mut bench = Bench::ring();
        for id in 0..16 {
            bench.put(&format!("w1.{id}[a400]"));
        }
        let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
        assert_eq!(clone.read(), bench.read());
    }

    #[test]
    fn case_117_a_clone_is_as_large_as_what_is_stored() {
        let mut bench = Bench::new(1024 * 1024);
        bench.put("w1.0[a]");
        assert!(bench.buffer.try_clone().unwrap().data.capacity() < 4096);
    }
}
