//! Random messages compared with a simple model. It reserves four bytes for each length, and takes
//! three of them back at the end of the message if the rules allow it (`docs/spec/protozero.md`
//! §4). The bytes, the ends of buffers and the deferred lengths must agree.

use esatto_protozero::{HeapBuffer, Message, ScatteredBuffer, ScatteredWriter, SliceBuffer, kind, wire};
use proptest::prelude::*;

use crate::chunks::Chunks;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Varint(u32, u64),
    Fixed32(u32, u32),
    Fixed64(u32, u64),
    Bytes(u32, Vec<u8>),
    Scattered(u32, Vec<Vec<u8>>),
    Packed(u32, Vec<u64>),
    OneByOne(u32, Vec<u64>),
    Floats(u32, Vec<f64>),
    Raw(Vec<u8>),
    Nested(u32, Vec<Self>),
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = prop_oneof![4 => 1..16u32, 2 => 16..2048u32, 1 => 2048..(1u32 << 29)];
    let number = prop_oneof![0..200u64, any::<u64>(), (0..64u32).prop_map(|bit| 1 << bit)];
    // Lengths around the limit of one byte, or small lengths that add up to it.
    let bytes = || {
        let len = prop_oneof![6 => 0..40usize, 2 => 100..140usize, 1 => 140..600usize];
        len.prop_map(|len| (0..len).map(|i| i as u8 | 1).collect::<Vec<u8>>())
    };
    let leaf = prop_oneof![
        4 => (id.clone(), number.clone()).prop_map(|(id, v)| Op::Varint(id, v)),
        1 => (id.clone(), any::<u32>()).prop_map(|(id, v)| Op::Fixed32(id, v)),
        1 => (id.clone(), any::<u64>()).prop_map(|(id, v)| Op::Fixed64(id, v)),
        3 => (id.clone(), bytes()).prop_map(|(id, v)| Op::Bytes(id, v)),
        1 => (id.clone(), prop::collection::vec(bytes(), 0..3)).prop_map(|(id, v)| Op::Scattered(id, v)),
        1 => (id.clone(), prop::collection::vec(number.clone(), 0..6)).prop_map(|(id, v)| Op::Packed(id, v)),
        1 => (id.clone(), prop::collection::vec(number, 0..60)).prop_map(|(id, v)| Op::OneByOne(id, v)),
        1 => (id.clone(), prop::collection::vec(any::<f64>(), 0..6)).prop_map(|(id, v)| Op::Floats(id, v)),
        1 => bytes().prop_map(Op::Raw),
    ];
    let tree = leaf.prop_recursive(20, 120, 6, move |inner| {
        (id.clone(), prop::collection::vec(inner, 0..6)).prop_map(|(id, ops)| Op::Nested(id, ops))
    });
    prop::collection::vec(tree, 0..8)
}

pub(crate) fn write(message: &mut Message<'_>, ops: &[Op]) {
    for op in ops {
        match op {
            Op::Varint(id, v) => message.varint(*id, *v),
            Op::Fixed32(id, v) => message.fixed32(*id, *v),
            Op::Fixed64(id, v) => message.fixed64(*id, *v),
            Op::Bytes(id, v) => message.bytes(*id, v),
            Op::Scattered(id, pieces) => {
                message.scattered_bytes(*id, &pieces.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            Op::Packed(id, values) => message.packed_varints(*id, values.iter().copied()),
            Op::OneByOne(id, values) => message.begin_packed::<kind::Uint64>(*id).extend(values.iter().copied()),
            Op::Floats(id, values) => message.packed::<kind::Double>(*id, values.iter().copied()),
            Op::Raw(v) => message.raw(v),
            Op::Nested(id, ops) => write(&mut message.begin(*id), ops),
        }
    }
}

/// Model of the writer.
struct Model {
    chunks: Vec<Vec<u8>>,
    size: usize,
    /// Chunk and offset of lengths that were open when their chunk was full.
    deferred: Vec<(usize, usize)>,
    open: Vec<(usize, usize)>,
    written: usize,
    /// The last chunk was given away before it was full.
    flushed: bool,
}

impl Model {
    fn new(size: usize) -> Self {
        Self { chunks: vec![], size, deferred: vec![], open: vec![], written: 0, flushed: false }
    }

    fn left(&self) -> usize {
        self.chunks.last().filter(|_| !self.flushed).map_or(0, |chunk| self.size - chunk.len())
    }

    fn next(&mut self) {
        let full = self.chunks.len().wrapping_sub(1);
        self.deferred.extend(self.open.iter().filter(|(chunk, _)| *chunk == full));
        self.chunks.push(vec![]);
        self.flushed = false;
    }

    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.left() == 0 {
                self.next();
            }
            self.chunks.last_mut().unwrap().push(byte);
        }
        self.written += bytes.len();
    }

    fn varint(&mut self, v: u64) {
        let mut out = [0; wire::MAX_VARINT_SIZE];
        let n = wire::encode_varint(v, &mut out);
        self.put(&out[..n]);
    }

    fn tag(&mut self, id: u32, wire_type: u32) {
        self.varint(u64::from(id << 3 | wire_type));
    }

    fn write(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Varint(id, v) => {
                    self.tag(*id, 0);
                    self.varint(*v);
                }
                Op::Fixed32(id, v) => {
                    self.tag(*id, 5);
                    self.put(&v.to_le_bytes());
                }
                Op::Fixed64(id, v) => {
                    self.tag(*id, 1);
                    self.put(&v.to_le_bytes());
                }
                Op::Bytes(id, v) => self.bytes(*id, v),
                Op::Scattered(id, pieces) => self.bytes(*id, &pieces.concat()),
                Op::Packed(id, values) => self.bytes(*id, &varints(values)),
                Op::OneByOne(id, values) => self.nested(*id, &[Op::Raw(varints(values))]),
                Op::Floats(id, values) => {
                    self.bytes(*id, &values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<_>>());
                }
                Op::Raw(v) => self.put(v),
                Op::Nested(id, ops) => self.nested(*id, ops),
            }
        }
    }

    fn bytes(&mut self, id: u32, v: &[u8]) {
        self.tag(id, 2);
        self.varint(v.len() as u64);
        self.put(v);
    }

    fn nested(&mut self, id: u32, ops: &[Op]) {
        self.tag(id, 2);
        if self.left() < 4 {
            self.next();
        }
        let (chunk, offset) = (self.chunks.len() - 1, self.chunks.last().unwrap().len());
        self.put(&[0; 4]);
        self.open.push((chunk, offset));
        let start = self.written;
        self.write(ops);
        self.open.pop();
        let size = self.written - start;
        let is_last = chunk == self.chunks.len() - 1;
        let content = &mut self.chunks[chunk];
        // All in one piece, and short.
        if size <= 127 && is_last && content.len() == offset + 4 + size {
            content.splice(offset..offset + 4, [size as u8]);
            self.written -= 3;
        } else {
            content[offset..offset + 4].copy_from_slice(&wire::redundant_varint4(size as u32));
        }
    }
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut inner = Model::new(usize::MAX);
    values.iter().for_each(|v| inner.varint(*v));
    inner.chunks.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn chunks_are_those_of_the_model(size in prop_oneof![9..40usize, 40..400usize], messages in prop::collection::vec((ops(), any::<bool>()), 1..6)) {
        let mut writer = ScatteredWriter::new(Chunks::of(size));
        let mut model = Model::new(size);
        for (ops, flush) in &messages {
            write(&mut writer.message(), ops);
            model.write(ops);
            if *flush {
                writer.flush();
                model.flushed = true;
            }
        }
        prop_assert_eq!(writer.dropped(), 0);
        let chunks = writer.into_delegate();
        prop_assert_eq!(chunks.patched(), model.chunks);
        let deferred: Vec<_> = chunks.lengths.iter().map(|&(chunk, offset, _)| (chunk, offset)).collect();
        prop_assert_eq!(deferred, model.deferred);
    }

    #[test]
    fn contiguous_buffers_hold_what_the_model_writes(messages in prop::collection::vec(ops(), 1..6)) {
        let mut model = Model::new(usize::MAX);
        messages.iter().for_each(|ops| model.write(ops));
        let expected = model.chunks.concat();
        let mut large = vec![0; expected.len() + 100];
        let mut slice = SliceBuffer::new(&mut large);
        messages.iter().for_each(|ops| write(&mut slice.message(), ops));
        prop_assert_eq!(slice.as_slice(), &expected[..]);
        // A heap buffer that grows inside a message cannot shorten lengths. A buffer that is large
        // enough can.
        let mut buffer = HeapBuffer::from(Vec::with_capacity(expected.len() + 100));
        messages.iter().for_each(|ops| write(&mut buffer.message(), ops));
        prop_assert_eq!(buffer.as_slice(), &expected[..]);
    }

    #[test]
    fn growing_buffers_encode_the_same_message(messages in prop::collection::vec(ops(), 1..4)) {
        let (mut heap, mut scattered) = (HeapBuffer::new(), ScatteredBuffer::with_slices(16, 64));
        let mut model = Model::new(usize::MAX);
        for ops in &messages {
            write(&mut heap.message(), ops);
            write(&mut scattered.message(), ops);
            model.write(ops);
        }
        let expected = model.chunks.concat();
        let normal = |bytes: &[u8]| shortest(&messages.concat(), &mut &bytes[..]);
        prop_assert_eq!(normal(heap.as_slice()), normal(&expected));
        prop_assert_eq!(normal(&scattered.to_vec()), normal(&expected));
    }
}

/// Returns `bytes`, which encode `ops`, with the lengths of nested messages in their shortest form.
pub(crate) fn shortest(ops: &[Op], bytes: &mut &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for op in ops {
        let inner: &[Op] = match op {
            Op::Nested(_, inner) => inner,
            Op::OneByOne(_, values) => &[Op::Raw(varints(values))],
            _ => {
                let mut plain = Model::new(usize::MAX);
                plain.write(core::slice::from_ref(op));
                let plain = plain.chunks.concat();
                let (same, rest) = bytes.split_at(plain.len());
                assert_eq!(same, plain);
                out.extend_from_slice(same);
                *bytes = rest;
                continue;
            }
        };
        let (_, tag) = wire::decode_varint(bytes).expect("a tag");
        let (len, n) = wire::decode_varint(&bytes[tag..]).expect("a length");
        out.extend_from_slice(&bytes[..tag]);
        let (mut content, rest) = bytes[tag + n..].split_at(len as usize);
        let content = shortest(inner, &mut content);
        let mut length = [0; wire::MAX_VARINT_SIZE];
        let n = wire::encode_varint(content.len() as u64, &mut length);
        out.extend_from_slice(&length[..n]);
        out.extend(content);
        *bytes = rest;
    }
    out
}
