//! [`WireBuffer`]: protobuf values on the way into a packet, stored a word at a time.
//!
//! A field of an event takes a few bytes. Here it is one store, of which a part may lie after the
//! end of the field, and no call. A whole event, or a column of numbers, is then one copy into the
//! packet.

use esatto_protozero::cursor::varint_word;
use esatto_protozero::wire::{self, MAX_VARINT_SIZE, WireType, encode_varint};

/// Bytes that a buffer has from the start.
const FIRST_BYTES: usize = 512;

/// Encoded values, one after the other. It grows, and keeps its memory.
#[derive(Debug)]
pub(crate) struct WireBuffer {
    bytes: Vec<u8>,
    len: usize,
}

/// An encoded tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The bytes of the tag, the first one lowest.
    word: u32,
    /// Number of bytes, at most 4.
    len: u8,
}

/// A message that was begun in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMessage {
    /// Where its length of one byte is.
    at: usize,
}

impl Tag {
    /// Tag of a field whose value is a varint. `number` is less than 2^25.
    pub(crate) const fn varint(number: u32) -> Self {
        Self::of(wire::tag(number, WireType::Varint))
    }

    /// Tag of a field of bytes, of a string, or of a message.
    pub(crate) const fn bytes(number: u32) -> Self {
        Self::of(wire::tag(number, WireType::LengthDelimited))
    }

    const fn of(tag: u32) -> Self {
        let mut bytes = [0; MAX_VARINT_SIZE];
        let len = encode_varint(tag as u64, &mut bytes);
        assert!(len <= 4, "a number of less than 2^25");
        Self { word: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), len: len as u8 }
    }
}

impl WireBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; FIRST_BYTES], len: 0 }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends a varint.
    #[inline(always)]
    pub(crate) fn varint(&mut self, value: u64) {
        let (word, len) = if value < 1 << 7 {
            (value, 1)
        } else if value < 1 << 14 {
            ((value & 0x7f) | 0x80 | value >> 7 << 8, 2)
        } else if let Some(varint) = varint_word(value) {
            varint
        } else {
            return self.long_varint(value);
        };
        self.word(word, len);
    }

    /// Appends a field with a varint.
    #[inline(always)]
    pub(crate) fn varint_field(&mut self, tag: Tag, value: u64) {
        if value < 1 << 7 {
            self.word(u64::from(tag.word) | value << (8 * tag.len), usize::from(tag.len) + 1);
        } else {
            self.word(u64::from(tag.word), usize::from(tag.len));
            self.varint(value);
        }
    }

    /// Appends a field of bytes.
    #[inline]
    pub(crate) fn bytes_field(&mut self, tag: Tag, bytes: &[u8]) {
        self.varint_field(tag, bytes.len() as u64);
        let end = self.len + bytes.len();
        if end > self.bytes.len() {
            self.grow(bytes.len());
        }
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    /// Appends a field with the first `len` bytes of a short text, of at most 16.
    #[inline(always)]
    pub(crate) fn short_field(&mut self, tag: Tag, text: &[u8; 16], len: usize) {
        self.varint_field(tag, len as u64);
        match self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = *text;
                self.len += len;
            }
            None => self.slow_bytes(&text[..len]),
        }
    }

    /// Begins a message, whose fields follow.
    #[inline(always)]
    pub(crate) fn begin(&mut self, tag: Tag) -> OpenMessage {
        // The length is 0 until the message ends.
        let len = usize::from(tag.len) + 1;
        self.word(u64::from(tag.word), len);
        OpenMessage { at: self.len - 1 }
    }

    /// Ends the message that was begun last.
    #[inline(always)]
    pub(crate) fn end(&mut self, message: OpenMessage) {
        let len = self.len - message.at - 1;
        if len < 0x80 {
            self.bytes[message.at] = len as u8;
        } else {
            self.end_long(message, len);
        }
    }

    /// Ends a message whose length takes more than a byte: moves its fields.
    #[cold]
    #[inline(never)]
    fn end_long(&mut self, OpenMessage { at }: OpenMessage, len: usize) {
        let mut varint = [0; MAX_VARINT_SIZE];
        let size = encode_varint(len as u64, &mut varint);
        self.grow(size);
        self.bytes.copy_within(at + 1..self.len, at + size);
        self.bytes[at..at + size].copy_from_slice(&varint[..size]);
        self.len += size - 1;
    }

    /// Appends the first `len` bytes of a word.
    #[inline(always)]
    fn word(&mut self, word: u64, len: usize) {
        match self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = word.to_le_bytes();
                self.len += len;
            }
            None => self.slow_bytes(&word.to_le_bytes()[..len]),
        }
    }

    #[cold]
    #[inline(never)]
    fn long_varint(&mut self, value: u64) {
        let mut bytes = [0; MAX_VARINT_SIZE];
        let len = encode_varint(value, &mut bytes);
        self.slow_bytes(&bytes[..len]);
    }

    #[cold]
    #[inline(never)]
    fn slow_bytes(&mut self, bytes: &[u8]) {
        self.grow(bytes.len());
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Makes room for `more` bytes and a word.
    #[cold]
    fn grow(&mut self, more: usize) {
        let needed = self.len + more + size_of::<u64>();
        if needed > self.bytes.len() {
            self.bytes.resize(needed.max(2 * self.bytes.len()), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::{Message, append_to};

    fn message(write: impl FnOnce(Message<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        append_to(&mut bytes, write);
        bytes
    }

    #[test]
    fn values_of_every_size_are_the_same_as_in_a_message() {
        let values = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        let mut buffer = WireBuffer::new();
        for (number, value) in (1..).step_by(173).zip(values.clone()) {
            buffer.varint_field(Tag::varint(number), value);
        }
        let expected = message(|mut message| {
            for (number, value) in (1..).step_by(173).zip(values) {
                message.varint(number, value);
            }
        });
        assert_eq!(buffer.as_slice(), expected);
    }

    #[test]
    fn a_long_message_gets_a_long_length() {
        for len in [0, 1, 100, 124, 125, 126, 127, 128, 500, 16_000, 20_000] {
            let text = vec![b'x'; len];
            let mut buffer = WireBuffer::new();
            let open = buffer.begin(Tag::bytes(70_000));
            buffer.bytes_field(Tag::bytes(1), &text);
            buffer.short_field(Tag::bytes(20), b"0123456789abcdef", 3);
            buffer.end(open);
            let fields = message(|mut message| {
                message.bytes(1, &text);
                message.string(20, "012");
            });
            assert_eq!(buffer.as_slice(), message(|mut message| message.bytes(70_000, &fields)), "{len}");
        }
    }
}
