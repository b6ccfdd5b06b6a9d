//! The zero-copy decoder (`docs/spec/protozero.md` §8.1).

use core::fmt;

use crate::wire::{self, MAX_FIELD_ID, MAX_MESSAGE_LENGTH, WireType};

/// Input that is not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Where the field begins that could not be read, in bytes from the start of the message.
    pub offset: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed protobuf field at byte {}", self.offset)
    }
}

impl core::error::Error for DecodeError {}

/// The fields of an encoded message, in the order of the bytes.
///
/// Ends at the end of the input or at the first field that is malformed; [`is_malformed`](Self::is_malformed) tells which. Never
/// allocates and never recurses: a nested message is a field of bytes to make another `Fields` of. Fields with numbers above
/// [`MAX_FIELD_ID`] and values longer than [`MAX_MESSAGE_LENGTH`] are passed over.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    input: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads the fields of `input`.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input, input }
    }

    /// Bytes consumed so far: where the next field begins, or where the malformed one does.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.input.len() - self.rest.len()
    }

    /// What has not been consumed.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// After the last field: true if input is left that is not a field.
    #[inline]
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Consumes all fields and tells whether they are well-formed.
    ///
    /// # Errors
    ///
    /// With the offset of the first field that is not.
    pub fn check(mut self) -> Result<(), DecodeError> {
        while self.next().is_some() {}
        if self.is_malformed() { Err(DecodeError { offset: self.offset() }) } else { Ok(()) }
    }

    /// The next field and the bytes it takes, tag included.
    #[inline]
    pub fn next_with_bytes(&mut self) -> Option<(Field<'a>, &'a [u8])> {
        let before = self.rest;
        let field = self.next()?;
        Some((field, &before[..before.len() - self.rest.len()]))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let (tag, rest) = match self.rest {
            [tag @ 0..=0x7f, rest @ ..] => (u32::from(*tag), rest),
            [low, high @ 0..=0x7f, rest @ ..] => (u32::from(*low & 0x7f) | u32::from(*high) << 7, rest),
            [] => return None,
            _ => return self.next_rare(),
        };
        if tag < 8 {
            return None;
        }
        let (value, rest) = if tag & 5 == 0 {
            let (v, size) = wire::read_varint(rest);
            if size == 0 {
                return None;
            }
            let rest = rest.get(size..)?;
            if tag & 2 == 0 {
                (Value::Varint(v), rest)
            } else {
                if v > MAX_MESSAGE_LENGTH as u64 {
                    return self.next_rare();
                }
                let (bytes, rest) = rest.split_at_checked(v as usize)?;
                (Value::Bytes(bytes), rest)
            }
        } else if tag & 7 == 1 {
            let (bytes, rest) = rest.split_first_chunk()?;
            (Value::Fixed64(u64::from_le_bytes(*bytes)), rest)
        } else if tag & 7 == 5 {
            let (bytes, rest) = rest.split_first_chunk()?;
            (Value::Fixed32(u32::from_le_bytes(*bytes)), rest)
        } else {
            return None;
        };
        self.rest = rest;
        Some(Field { id: tag >> 3, value })
    }
}

impl<'a> Fields<'a> {
    #[cold]
    #[inline(never)]
    fn next_rare(&mut self) -> Option<Field<'a>> {
        loop {
            let (field, len) = decode_field(self.rest)?;
            self.rest = &self.rest[len..];
            if field.is_some() {
                return field;
            }
        }
    }
}

/// Reads one field: itself (or `None` if it is to be passed over) and the number of bytes it takes.
#[inline]
fn decode_field(input: &[u8]) -> Option<(Option<Field<'_>>, usize)> {
    let (tag, mut at) = match *input.first()? {
        byte @ 0..=0x7f => (u64::from(byte), 1),
        _ => wire::decode_varint(input)?,
    };
    let id = tag >> 3;
    if id == 0 {
        return None;
    }
    let rest = &input[at..];
    let value = match WireType::from_tag(tag)? {
        WireType::Varint => {
            let (v, n) = wire::decode_varint(rest)?;
            at += n;
            Some(Value::Varint(v))
        }
        WireType::Fixed64 => {
            at += 8;
            Some(Value::Fixed64(u64::from_le_bytes(*rest.first_chunk()?)))
        }
        WireType::Fixed32 => {
            at += 4;
            Some(Value::Fixed32(u32::from_le_bytes(*rest.first_chunk()?)))
        }
        WireType::LengthDelimited => {
            let (len, n) = wire::decode_varint(rest)?;
            let len = usize::try_from(len).ok()?;
            let bytes = rest[n..].get(..len)?;
            at += n + len;
            (len <= MAX_MESSAGE_LENGTH).then_some(Value::Bytes(bytes))
        }
    };
    let field = match (u32::try_from(id), value) {
        (Ok(id), Some(value)) if id <= MAX_FIELD_ID => Some(Field { id, value }),
        _ => None,
    };
    Some((field, at))
}

/// One field of an encoded message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// The field number, 1 … [`MAX_FIELD_ID`].
    pub id: u32,
    /// The undecoded value.
    pub value: Value<'a>,
}

/// The value of a field by wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A base-128 integer.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes, a nested message or packed values.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// Accessors convert what the wire type can carry; a value of another kind reads as 0 or as empty.
impl<'a> Field<'a> {
    /// As `uint64` or `fixed64`.
    #[inline]
    #[must_use]
    pub const fn as_u64(&self) -> u64 {
        match self.value {
            Value::Varint(v) | Value::Fixed64(v) => v,
            Value::Fixed32(v) => v as u64,
            Value::Bytes(_) => 0,
        }
    }

    /// As `int64` or `sfixed64`.
    #[inline]
    #[must_use]
    pub const fn as_i64(&self) -> i64 {
        match self.value {
            Value::Fixed32(v) => v as i32 as i64,
            _ => self.as_u64() as i64,
        }
    }

    /// As `uint32` or `fixed32`: the low 32 bits.
    #[inline]
    #[must_use]
    pub const fn as_u32(&self) -> u32 {
        self.as_u64() as u32
    }

    /// As `int32` or `sfixed32`: the low 32 bits.
    #[inline]
    #[must_use]
    pub const fn as_i32(&self) -> i32 {
        self.as_u64() as u32 as i32
    }

    /// As `sint32` or `sint64`.
    #[inline]
    #[must_use]
    pub const fn as_sint(&self) -> i64 {
        match self.value {
            Value::Varint(v) => wire::unzigzag(v),
            _ => 0,
        }
    }

    /// As `bool`.
    #[inline]
    #[must_use]
    pub const fn as_bool(&self) -> bool {
        self.as_u64() != 0
    }

    /// As `float`.
    #[inline]
    #[must_use]
    pub const fn as_f32(&self) -> f32 {
        match self.value {
            Value::Fixed32(v) => f32::from_bits(v),
            _ => 0.0,
        }
    }

    /// As `double`.
    #[inline]
    #[must_use]
    pub const fn as_f64(&self) -> f64 {
        match self.value {
            Value::Fixed64(v) => f64::from_bits(v),
            _ => 0.0,
        }
    }

    /// As `bytes`, `string` or a nested message.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        match self.value {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> (usize, bool) {
        let mut fields = Fields::new(input);
        let n = fields.by_ref().count();
        (n, fields.is_malformed())
    }

    #[test]
    fn every_row_of_the_malformed_input_table() {
        assert_eq!(all(b""), (0, false), "end of input");
        assert_eq!(all(b"\x08"), (0, true), "a lone tag");
        assert_eq!(all(b"\x80\x80"), (0, true), "tag cut off");
        assert_eq!(all(&[0xff; 11]), (0, true), "tag overlong");
        assert_eq!(all(b"\x00\x01"), (0, true), "field 0");
        for wire_type in [3u8, 4, 6, 7] {
            assert_eq!(all(&[0x08 | wire_type, 0]), (0, true), "wire type {wire_type}");
        }
        assert_eq!(all(b"\x08\x80"), (0, true), "varint cut off");
        assert_eq!(all(b"\x09\x01\x02"), (0, true), "fixed64 cut off");
        assert_eq!(all(b"\x0d\x01\x02"), (0, true), "fixed32 cut off");
        assert_eq!(all(b"\x0a\x02\x00"), (0, true), "length beyond the end");
        assert_eq!(all(b"\x08\x01\x0a\x02\x00"), (1, true), "fields before the bad one are read");
        assert_eq!(all(b"\x80\x80\x80\x80\x01\x07\x08\x01"), (1, false), "a field number over 2^24 is passed over");
    }

    #[test]
    fn redundant_lengths_are_read() {
        let field = Fields::new(b"\x0a\x82\x80\x80\x00ab").next().unwrap();
        assert_eq!(field.as_bytes(), b"ab");
    }
}
