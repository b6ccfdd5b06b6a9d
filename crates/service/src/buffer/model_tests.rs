//! Writers that behave like the SDK, against a model that remembers their packets.
//!
//! Promises: packets of a writer come out in order, whole, each at most once. A packet carries loss
//! bits exactly if packets before it never came. A buffer that is large enough loses nothing.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const CHUNK_BYTES: usize = 240;
const FIRST_CONTINUES: u8 = 1;
const LAST_CONTINUES: u8 = 2;
const NEEDS_PATCHING: u8 = 4;

#[derive(Clone, Debug)]
enum Op {
    /// A writer writes a packet.
    Write { writer: usize, len: usize, patched: bool },
    /// The service copies uncommitted chunks, in any order.
    Scrape { writer: usize, reversed: bool },
    /// The writer's oldest full chunks are committed.
    Commit { writer: usize, chunks: usize },
    /// The oldest open patch of a writer arrives.
    Patch { writer: usize },
    /// So many packets are read in a pass.
    Read { packets: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let writer = 0..3usize;
    prop_oneof![
        8 => (writer.clone(), prop_oneof![5 => 8..60usize, 1 => 60..900usize], any::<bool>())
            .prop_map(|(writer, len, patched)| Op::Write { writer, len, patched }),
        2 => (writer.clone(), any::<bool>()).prop_map(|(writer, reversed)| Op::Scrape { writer, reversed }),
        4 => (writer.clone(), 1..4usize).prop_map(|(writer, chunks)| Op::Commit { writer, chunks }),
        2 => writer.prop_map(|writer| Op::Patch { writer }),
        2 => prop_oneof![Just(usize::MAX), 0..6usize].prop_map(|packets| Op::Read { packets }),
    ]
}

#[derive(Clone, Debug, Default)]
struct OpenChunk {
    id: u32,
    payload: Vec<u8>,
    count: u16,
    flags: u8,
}

#[derive(Debug)]
struct Writer {
    number: u16,
    packets: u32,
    open: OpenChunk,
    full: VecDeque<OpenChunk>,
    /// Chunks that wait for a patch, committed or not.
    unpatched: VecDeque<u32>,
    /// Number of the packet that comes next.
    next_expected: u32,
    /// Commits come from shared memory.
    by_the_short_way: bool,
}

impl Writer {
    fn new(number: u16, by_the_short_way: bool) -> Self {
        // Ids wrap in the middle of the test.
        let open = OpenChunk { id: u32::MAX - 3, ..OpenChunk::default() };
        let (full, unpatched) = (VecDeque::new(), VecDeque::new());
        Self { number, packets: 0, open, full, unpatched, next_expected: 0, by_the_short_way }
    }

    fn write(&mut self, len: usize, patched: bool) {
        let mut rest = &content(self.number, self.packets, len)[..];
        self.packets += 1;
        loop {
            let room = CHUNK_BYTES - self.open.payload.len() - 2;
            let take = rest.len().min(room).min(16_000);
            self.open.payload.push(take as u8 & 0x7f | 0x80);
            self.open.payload.push((take >> 7) as u8);
            self.open.payload.extend_from_slice(&rest[..take]);
            self.open.count += 1;
            rest = &rest[take..];
            if rest.is_empty() {
                break;
            }
            self.open.flags |= LAST_CONTINUES;
            if patched {
                self.open.flags |= NEEDS_PATCHING;
                self.unpatched.push_back(self.open.id);
            }
            self.close();
            self.open.flags = FIRST_CONTINUES;
        }
        if self.open.payload.len() + 12 > CHUNK_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.open.count == 0 {
            return;
        }
        let next = OpenChunk { id: self.open.id.wrapping_add(1), ..OpenChunk::default() };
        self.full.push_back(core::mem::replace(&mut self.open, next));
    }

    fn copy(&self, buffer: &mut CentralBuffer, chunk: &OpenChunk, complete: bool) {
        let mut payload = chunk.payload.clone();
        let mut count = chunk.count;
        if !complete {
            // A begun packet with a size byte from an earlier life.
            count += 1;
            payload.push(0x02);
            payload.resize(CHUNK_BYTES, 0x55);
        }
        let header = ChunkHeader { writer_id: self.number, chunk_id: chunk.id, count, flags: chunk.flags };
        let identity = Identity::default();
        let producer = ProducerId(1);
        if complete && self.by_the_short_way {
            // The bytes after a chunk's fragments are arbitrary.
            payload.resize(CHUNK_BYTES, 0x55);
            buffer.copy_from(producer, identity, header, &payload.as_slice(), &mut Vec::new());
        } else {
            buffer.copy(&Chunk { producer, identity, header, complete, payload: &payload });
        }
    }

    /// Checks a packet that was read.
    fn check(&mut self, bytes: &[u8], loss: u32) {
        let number = u32::from_le_bytes(bytes[2..6].try_into().unwrap());
        assert_eq!(bytes, content(self.number, number, bytes.len()), "the content of packet {number}");
        assert!(number >= self.next_expected, "packet {number} comes again, or out of order");
        assert_eq!(loss != 0, number > self.next_expected, "packet {number} with loss {loss}");
        self.next_expected = number + 1;
    }
}

fn content(writer: u16, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = writer.to_le_bytes().to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    let mut word = u64::from(number) << 16 | u64::from(writer);
    while bytes.len() < len {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.push((word >> 56) as u8);
    }
    bytes
}

fn read(buffer: &mut CentralBuffer, writers: &mut [Writer], packets: usize) {
    buffer.begin_read();
    for _ in 0..packets {
        let Some(packet) = buffer.next_packet() else { return };
        let bytes: Vec<u8> = packet.slices().flatten().copied().collect();
        writers[usize::from(packet.writer.0) - 1].check(&bytes, packet.loss);
    }
}

fn run(ops: &[Op], size_kb: u32, by_the_short_way: bool) -> (CentralBuffer, Vec<Writer>) {
    let mut buffer = CentralBuffer::new(size_kb, FillPolicy::Ring).unwrap();
    let mut writers: Vec<Writer> = (1..=3).map(|number| Writer::new(number, by_the_short_way)).collect();
    for op in ops {
        match *op {
            Op::Write { writer, len, patched } => writers[writer].write(len, patched),
            Op::Scrape { writer, reversed } => {
                let writer = &writers[writer];
                let mut chunks: Vec<(&OpenChunk, bool)> = writer.full.iter().map(|chunk| (chunk, true)).collect();
                if writer.open.count > 0 {
                    chunks.push((&writer.open, false));
                }
                if reversed {
                    chunks.reverse();
                }
                for (chunk, complete) in chunks {
                    writer.copy(&mut buffer, chunk, complete);
                }
            }
            Op::Commit { writer, chunks } => {
                for _ in 0..chunks {
                    let Some(chunk) = writers[writer].full.pop_front() else { break };
                    writers[writer].copy(&mut buffer, &chunk, true);
                }
            }
            Op::Patch { writer } => patch(&mut buffer, &mut writers[writer]),
            Op::Read { packets } => read(&mut buffer, &mut writers, packets),
        }
        buffer.assert_consistent();
    }
    for writer in &mut writers {
        writer.close();
        while let Some(chunk) = writer.full.pop_front() {
            writer.copy(&mut buffer, &chunk, true);
        }
        while !writer.unpatched.is_empty() {
            patch(&mut buffer, writer);
        }
    }
    read(&mut buffer, &mut writers, usize::MAX);
    (buffer, writers)
}

/// Returns the records whose content has a meaning.
fn records(buffer: &CentralBuffer) -> Vec<(record::Record, &[u8])> {
    let mut at = 0;
    let mut found = Vec::new();
    while at < buffer.data.len() {
        let record = record::load(&buffer.data, at);
        let fragments = match record {
            record::Record::Chunk(chunk) => usize::from(chunk.available),
            record::Record::Padding { .. } => 0,
        };
        found.push((record, &buffer.data[at + record::HEADER..][..fragments]));
        at += record.size();
    }
    found
}

/// Patches go out with or after the commit of their chunk.
fn patch(buffer: &mut CentralBuffer, writer: &mut Writer) {
    if let Some(&id) = writer.unpatched.front() {
        if writer.full.iter().all(|chunk| chunk.id != id) {
            writer.unpatched.pop_front();
            buffer.patch(ProducerId(1), WriterId(writer.number), id, core::iter::empty(), false);
        }
    }
}

proptest! {
    #[test]
    fn a_large_buffer_returns_every_packet_once_in_order(
        ops in proptest::collection::vec(op(), 0..200),
        by_the_short_way: bool,
    ) {
        let (buffer, writers) = run(&ops, 1024, by_the_short_way);
        for writer in &writers {
            prop_assert_eq!(writer.next_expected, writer.packets, "writer {}", writer.number);
        }
        prop_assert_eq!(buffer.stats().chunks_overwritten, 0);
        prop_assert_eq!(buffer.stats().abi_violations, 0);
    }

    #[test]
    fn a_small_ring_reports_exactly_what_it_lost(
        ops in proptest::collection::vec(op(), 0..300),
        by_the_short_way: bool,
    ) {
        run(&ops, 4, by_the_short_way);
    }

    /// The stored bytes and the counters do not depend on the way in which a chunk was copied.
    #[test]
    fn the_direct_copy_and_the_ordinary_copy_store_the_same(ops in proptest::collection::vec(op(), 0..300)) {
        let (long, _) = run(&ops, 4, false);
        let (short, _) = run(&ops, 4, true);
        prop_assert_eq!(long.stats(), short.stats());
        prop_assert_eq!(long.write, short.write);
        prop_assert_eq!(records(&long), records(&short));
    }
}
