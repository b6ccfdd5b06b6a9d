//! Columns of the page: numbers and texts as deflated bytes.
//!
//! `page/decode.js` reads them. All numbers are variable-length integers of 7 bits per byte; those
//! with a sign are in zigzag form. The page keeps numbers as 64-bit floating-point values, so
//! integers are exact below 2^53; greater ones are clamped.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};

/// Greatest integer that the page can hold exactly.
pub(crate) const GREATEST_EXACT: i64 = (1 << 53) - 1;

/// Form of a column, by its name in `page/decode.js`.
#[derive(Debug, Clone, Copy)]
enum Form {
    Unsigned,
    Integer,
    Delta,
    Double,
    Text,
    Bytes,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Integer => "integer",
            Self::Delta => "delta",
            Self::Double => "double",
            Self::Text => "text",
            Self::Bytes => "bytes",
        }
    }
}

/// Appends a number of variable length.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "7 bits and the mark of more")]
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
    bytes.push(value as u8);
}

/// Appends a number with a sign, clamped to ±(2^53 - 1).
pub(crate) fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    let value = value.clamp(-GREATEST_EXACT, GREATEST_EXACT);
    #[expect(clippy::cast_sign_loss, reason = "zigzag form")]
    put_varint(bytes, ((value << 1) ^ (value >> 63)) as u64);
}

/// All columns of a page.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    descriptions: serde_json::Map<String, Value>,
    blocks: Vec<String>,
}

impl Columns {
    fn add(&mut self, name: &str, form: Form, count: usize, bytes: &[u8]) {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::new(6));
        deflated.write_all(bytes).expect("memory takes all bytes");
        let deflated = deflated.finish().expect("memory takes all bytes");
        let column = json!({ "block": self.blocks.len(), "form": form.name(), "count": count });
        self.descriptions.insert(name.to_owned(), column);
        self.blocks.push(base64::engine::general_purpose::STANDARD.encode(deflated));
    }

    /// Adds a column of numbers below 2^32.
    pub(crate) fn unsigned(&mut self, name: &str, values: impl ExactSizeIterator<Item = u32>) {
        let count = values.len();
        let mut bytes = Vec::with_capacity(count);
        values.for_each(|value| put_varint(&mut bytes, value.into()));
        self.add(name, Form::Unsigned, count, &bytes);
    }

    /// Adds a column of integers.
    pub(crate) fn integers(&mut self, name: &str, values: impl ExactSizeIterator<Item = i64>) {
        let count = values.len();
        let mut bytes = Vec::with_capacity(count * 2);
        values.for_each(|value| put_signed(&mut bytes, value));
        self.add(name, Form::Integer, count, &bytes);
    }

    /// Adds a column of integers as differences, for values that grow slowly.
    pub(crate) fn deltas(&mut self, name: &str, values: impl ExactSizeIterator<Item = i64>) {
        let count = values.len();
        let mut bytes = Vec::with_capacity(count * 2);
        let mut before = 0;
        for value in values {
            let value = value.clamp(-GREATEST_EXACT / 2, GREATEST_EXACT / 2);
            put_signed(&mut bytes, value - before);
            before = value;
        }
        self.add(name, Form::Delta, count, &bytes);
    }

    /// Adds a column of floating-point numbers.
    pub(crate) fn doubles(&mut self, name: &str, values: impl ExactSizeIterator<Item = f64>) {
        let count = values.len();
        let mut bytes = Vec::with_capacity(count * 8);
        values.for_each(|value| bytes.extend(value.to_le_bytes()));
        self.add(name, Form::Double, count, &bytes);
    }

    /// Adds a column of texts.
    pub(crate) fn texts<'t>(&mut self, name: &str, values: impl ExactSizeIterator<Item = &'t str>) {
        let count = values.len();
        let mut bytes = Vec::new();
        for value in values {
            put_varint(&mut bytes, value.len() as u64);
            bytes.extend(value.as_bytes());
        }
        self.add(name, Form::Text, count, &bytes);
    }

    /// Adds bytes that the page reads by itself.
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.add(name, Form::Bytes, bytes.len(), bytes);
    }

    /// Returns the descriptions of the columns by their names, and the blocks that they name.
    pub(crate) fn finish(self) -> (Value, Vec<String>) {
        (Value::Object(self.descriptions), self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_signed(&mut bytes, value);
        bytes
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        assert_eq!(signed(0), [0]);
        assert_eq!(signed(-1), [1]);
        assert_eq!(signed(63), [126]);
        assert_eq!(signed(64), [0x80, 1]);
    }

    #[test]
    fn numbers_that_the_page_cannot_hold_are_clamped() {
        assert_eq!(signed(i64::MAX), signed(GREATEST_EXACT));
        assert_eq!(signed(i64::MIN), signed(-GREATEST_EXACT));
    }
}
