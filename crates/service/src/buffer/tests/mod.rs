//! Tests of the table in `docs/spec/trace-buffer.md §20`, each row under its number.
//!
//! For rows about V1 alone they show the behaviour of this buffer with the same input
//! (`docs/central-buffer.md` lists these differences).
//!
//! | rows | file |
//! |---|---|
//! | 1-20 | `basics` |
//! | 21-36 | `fragments` |
//! | 37-51 | `order` |
//! | 52-55 | `marks` |
//! | 56-81 | `again` |
//! | 82-92 | `patches` |
//! | 93-103 | `malicious` |
//! | 104-107 | `discard` |
//! | 108-112 | `counting` |
//! | 113-118 | `clones` |
//! | 119-124 | `read/packet_check.rs`, `read/trusted_fields.rs` |
//! | 125 | `tests/service/captures.rs` |
//!
//! `counters` has every counter of §14, and `amendments` the advice of §19 and cases that the table
//! lacks. `passes` has reads in several batches, and `work` the work that strangers can cause.
//!
//! Chunks are written as in that table: `p2w1.0?![<a20 b30>]` is producer 2, writer 1, chunk 0,
//! still being written, in need of patches. Its first packet continues one before and takes 20
//! bytes with its size field, and its last packet continues. A number missing after a letter is 32.
//! `pad512` makes the chunk's record 512 bytes. Packets that were read are written `a bc d=65`:
//! packet `bc` of two fragments, and loss bits 65 on `d`.

mod again;
mod amendments;
mod basics;
mod clones;
mod counters;
mod counting;
mod discard;
mod fragments;
mod kept;
mod malicious;
mod marks;
mod order;
mod passes;
mod patches;
mod work;

use super::*;

#[test]
fn every_row_of_the_table_has_a_test() {
    let files = [
        include_str!("basics.rs"),
        include_str!("fragments.rs"),
        include_str!("order.rs"),
        include_str!("marks.rs"),
        include_str!("again.rs"),
        include_str!("patches.rs"),
        include_str!("malicious.rs"),
        include_str!("discard.rs"),
        include_str!("counting.rs"),
        include_str!("clones.rs"),
        include_str!("../../read/packet_check.rs"),
        include_str!("../../read/trusted_fields.rs"),
        include_str!("../../../tests/service/captures.rs"),
    ];
    let missing: Vec<u32> = (1..=125)
        .filter(|row| {
            !files.iter().any(|file| {
                file.contains(&format!("#[test]\nfn row_{row:03}_"))
                    || file.contains(&format!("#[test]\n    fn row_{row:03}_"))
            })
        })
        .collect();
    assert_eq!(missing, []);
}

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

    /// Commits a chunk as it is.
    fn raw(&mut self, writer: u16, chunk_id: u32, count: u16, payload: &[u8]) {
        self.raw_flags(writer, chunk_id, count, 0, payload);
    }

    fn raw_flags(&mut self, writer: u16, chunk_id: u32, count: u16, flags: u8, payload: &[u8]) {
        let header = ChunkHeader { writer_id: writer, chunk_id, count, flags };
        self.raw_chunk(1, header, payload);
    }

    fn raw_of(&mut self, producer: u16, writer: u16, chunk_id: u32, count: u16, payload: &[u8]) {
        self.raw_chunk(producer, ChunkHeader { writer_id: writer, chunk_id, count, flags: 0 }, payload);
    }

    fn raw_chunk(&mut self, producer: u16, header: ChunkHeader, payload: &[u8]) {
        let identity = Identity { uid: i32::from(producer) * 11, ..Identity::default() };
        self.buffer.copy(&Chunk { producer: ProducerId(producer), identity, header, complete: true, payload });
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

    /// All packets of a pass, as they are.
    fn read_bytes(&mut self) -> Vec<Vec<u8>> {
        self.buffer.begin_read();
        let mut packets = Vec::new();
        while let Some(packet) = self.buffer.next_packet() {
            packets.push(packet.slices().flatten().copied().collect());
        }
        packets
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

    /// Complete chunks come in as from shared memory.
    fn commit(&self, buffer: &mut CentralBuffer) {
        let Self { header, complete, ref payload, .. } = *self;
        let producer = ProducerId(self.producer);
        let identity = Identity { uid: i32::from(self.producer) * 11, ..Identity::default() };
        if complete {
            buffer.copy_from(producer, identity, header, &payload.as_slice(), &mut Vec::new());
        } else {
            buffer.copy(&Chunk { producer, identity, header, complete, payload });
        }
    }
}
