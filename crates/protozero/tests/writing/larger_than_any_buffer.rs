//! A message may be far larger than any buffer, and a buffer as small as a tag and a length.

use esatto_protozero::wire::{MAX_MESSAGE_LENGTH, redundant_varint4};
use esatto_protozero::{Delegate, Filled, HeapBuffer, ScatteredWriter};

use crate::chunks::Chunks;

/// Counts bytes and keeps the first ones.
#[derive(Default)]
struct Count {
    size: usize,
    spare: Option<Box<[u8]>>,
    total: usize,
    head: Vec<u8>,
    lengths: Vec<[u8; 4]>,
}

impl Delegate for Count {
    type Buffer = Box<[u8]>;

    fn acquire(&mut self, _min_len: usize) -> Option<Box<[u8]>> {
        Some(self.spare.take().unwrap_or_else(|| vec![0; self.size].into()))
    }

    fn release(&mut self, buffer: Box<[u8]>, filled: Filled) {
        if self.total == 0 {
            self.head = buffer[..filled.used.min(16)].to_vec();
        }
        self.total += filled.used;
        self.spare = Some(buffer);
    }

    fn defer_length(&mut self, _offset: usize) -> Option<u32> {
        self.lengths.push([0; 4]);
        Some(self.lengths.len() as u32 - 1)
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        self.lengths[number as usize] = bytes;
    }
}

/// Writes a nested message with this many bytes of content.
fn write(writer: &mut ScatteredWriter<Count>, content: usize) {
    let mut root = writer.message();
    let mut nested = root.begin(1);
    let block = [0x55; 65_536];
    let mut left = content;
    while left > 0 {
        let now = left.min(block.len());
        nested.raw(&block[..now]);
        left -= now;
    }
    assert_eq!(nested.len(), content);
}

#[test]
fn the_largest_message_goes_through_chunks_of_4096_bytes() {
    let mut writer = ScatteredWriter::new(Count { size: 4096, ..Count::default() });
    write(&mut writer, MAX_MESSAGE_LENGTH);
    assert_eq!(writer.dropped(), 0);
    let count = writer.into_delegate();
    assert_eq!(count.total, 5 + MAX_MESSAGE_LENGTH);
    assert_eq!(count.lengths, [redundant_varint4(MAX_MESSAGE_LENGTH as u32)]);
    assert_eq!(count.lengths, [[0xff, 0xff, 0xff, 0x7f]]);
    assert_eq!(count.head[..5], [0x0a, 0, 0, 0, 0]);
}

#[test]
fn a_message_that_is_one_byte_too_long_is_void() {
    let mut writer = ScatteredWriter::new(Count { size: 1 << 20, ..Count::default() });
    write(&mut writer, MAX_MESSAGE_LENGTH + 1);
    assert_eq!(writer.dropped(), 1);
    writer.message().varint(1, 1);
    assert_eq!(writer.dropped(), 1);

    // Also in one piece.
    let mut buffer = HeapBuffer::with_capacity(MAX_MESSAGE_LENGTH + 100);
    let block = vec![0; (MAX_MESSAGE_LENGTH + 1) / 4];
    let mut root = buffer.message();
    let mut nested = root.begin(1);
    (0..4).for_each(|_| nested.raw(&block));
    drop(nested);
    drop(root);
    assert_eq!((buffer.dropped(), buffer.len()), (1, 0));
}

#[test]
fn a_buffer_may_be_as_small_as_a_tag_and_a_length() {
    for size in 5..12 {
        let mut writer = ScatteredWriter::new(Chunks::of(size));
        let mut root = writer.message();
        for id in [1, 15] {
            let mut outer = root.begin(id);
            outer.begin(id).string(id, "in small pieces");
            outer.double(id, 1.5);
        }
        drop(root);
        assert_eq!(writer.dropped(), 0);
        let bytes = writer.into_delegate().stitched();
        for (field, id) in esatto_protozero::Fields::new(&bytes).zip([1, 15]) {
            let mut fields = esatto_protozero::Fields::new(field.as_bytes());
            let inner = fields.next().unwrap();
            let text = esatto_protozero::Fields::new(inner.as_bytes()).next().unwrap();
            assert_eq!((field.id, inner.id, text.as_bytes()), (id, id, &b"in small pieces"[..]));
            assert_eq!(fields.next().unwrap().as_f64(), 1.5);
        }
    }
}
