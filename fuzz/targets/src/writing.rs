//! The writer: a script of fields, nested messages and leaked guards, into several sinks at once.

use esatto_protozero::{
    Delegate, Fields, Filled, HeapBuffer, Message, ScatteredWriter, SliceBuffer, StaticBuffer, Value, kind,
};

use crate::script::Script;

/// Messages of one script.
const MESSAGES: usize = 8;
/// Nesting beyond the inline slots of a stream.
const MAX_DEPTH: u32 = 24;
/// Operations of one script.
const OPERATIONS: usize = 400;

/// Writes the same fields to every kind of sink: all must agree, and a sink that is too small must
/// say so.
pub fn protozero_write(bytes: &[u8]) {
    let size = 9 + usize::from(bytes.first().copied().unwrap_or(0));
    let bytes = bytes.get(1..).unwrap_or_default();
    let mut heap = HeapBuffer::new();
    let mut scattered = ScatteredWriter::new(Chunks { size, ..Chunks::default() });
    let mut memory = vec![0; 20_000];
    let mut slice = SliceBuffer::new(&mut memory);
    let mut small = StaticBuffer::<64>::new();
    let mut scripts = [(); 4].map(|()| Interpreter { script: Script::new(bytes), left: OPERATIONS });
    for _ in 0..MESSAGES {
        scripts[0].write(&mut heap.message(), 0);
        scripts[1].write(&mut scattered.message(), 0);
        scripts[2].write(&mut slice.message(), 0);
        scripts[3].write(&mut small.message(), 0);
    }
    assert_eq!(heap.dropped(), scattered.dropped(), "leaks are seen everywhere");
    let dropped = heap.dropped();
    let chunks = scattered.into_delegate();
    assert!(chunks.lengths.iter().all(|length| length.2), "every length is told or its message void");
    if dropped == 0 {
        let stitched = chunks.chunks.concat();
        assert_eq!(values(heap.as_slice(), MAX_DEPTH), values(&stitched, MAX_DEPTH));
        if slice.dropped() == 0 {
            assert_eq!(values(heap.as_slice(), MAX_DEPTH), values(slice.as_slice(), MAX_DEPTH));
        }
    }
    assert!(Fields::new(heap.as_slice()).check().is_ok());
    assert!(Fields::new(slice.as_slice()).check().is_ok());
    assert!(Fields::new(small.as_slice()).check().is_ok());
}

/// Turns bytes into calls.
struct Interpreter<'a> {
    script: Script<'a>,
    left: usize,
}

/// Field numbers of nested messages, so that [`values`] knows where to look.
const NESTED: u32 = 7;

impl Interpreter<'_> {
    fn write(&mut self, message: &mut Message<'_>, depth: u32) {
        loop {
            let operation = self.script.u8();
            if operation == 0 || self.left == 0 {
                return;
            }
            self.left -= 1;
            let id = [1, 15, 16, 3000, (1 << 29) - 1][usize::from(self.script.u8()) % 5];
            match operation % 10 {
                0 => return,
                1 => message.varint(id, u64::from(self.script.u8()) << (self.script.u8() % 64)),
                2 => message.fixed64(id, u64::from(self.script.u8())),
                3 => message.fixed32(id, u32::from(self.script.u8())),
                4 | 5 => message.bytes(id, &vec![0x08; usize::from(self.script.u8())]),
                6 => message.begin_packed::<kind::Sint64>(id).extend((0..self.script.u8()).map(i64::from)),
                7 => message.packed::<kind::Uint32>(id, (0..u32::from(self.script.u8())).map(|v| v * v)),
                _ if depth < MAX_DEPTH => {
                    let mut nested = message.begin(NESTED);
                    self.write(&mut nested, depth + 1);
                    // Rarely, or nothing would ever be compared.
                    if operation == 249 && self.script.u8() > 250 {
                        core::mem::forget(nested);
                    }
                }
                _ => message.sint(id, -1),
            }
        }
    }
}

/// Values of a message, independent of the width of its lengths.
fn values(bytes: &[u8], depth: u32) -> Vec<(u32, Said)> {
    let mut fields = Fields::new(bytes);
    let values = fields
        .by_ref()
        .map(|field| match field.value {
            Value::Bytes(bytes) if field.id == NESTED && depth > 0 => {
                (field.id, Said::Nested(values(bytes, depth - 1)))
            }
            Value::Bytes(bytes) => (field.id, Said::Bytes(bytes.to_vec())),
            value => (field.id, Said::Number(format!("{value:?}"))),
        })
        .collect();
    assert!(!fields.is_malformed(), "what was written is whole");
    values
}

#[derive(Debug, PartialEq)]
enum Said {
    Number(String),
    Bytes(Vec<u8>),
    Nested(Vec<(u32, Said)>),
}

/// Keeps all chunks and fills lengths in where they are.
#[derive(Default)]
struct Chunks {
    size: usize,
    chunks: Vec<Vec<u8>>,
    lengths: Vec<(usize, usize, bool)>,
}

impl Delegate for Chunks {
    type Buffer = Vec<u8>;

    fn acquire(&mut self, _min_len: usize) -> Option<Vec<u8>> {
        Some(vec![0xee; self.size])
    }

    fn release(&mut self, mut buffer: Vec<u8>, filled: Filled) {
        buffer.truncate(filled.used);
        self.chunks.push(buffer);
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.lengths.push((self.chunks.len(), offset, false));
        Some(self.lengths.len() as u32 - 1)
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        let (chunk, offset, told) = &mut self.lengths[number as usize];
        self.chunks[*chunk][*offset..*offset + 4].copy_from_slice(&bytes);
        *told = true;
    }

    fn abandon(&mut self) {
        self.lengths.iter_mut().for_each(|length| length.2 = true);
    }
}
