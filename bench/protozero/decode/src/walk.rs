//! Esatto: over every field of every message, as deep as the schema goes.

use esatto_protozero::{DecodeError, Fields, Value, wire};

/// Table of a message type: the payload of each field, by field number.
#[derive(Debug)]
pub(crate) struct Message(&'static [Payload]);

/// Payload of a length-delimited field.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "a schema need not have all of them")]
pub(crate) enum Payload {
    Bytes,
    Text,
    Nested(&'static Message),
    PackedVarints,
    Packed32,
    Packed64,
}

/// Generated from Perfetto's schema.
mod tables {
    #![allow(unused_imports, reason = "as above")]

    use super::Message;
    use super::Payload::{Bytes, Nested, Packed32, Packed64, PackedVarints, Text};

    include!(concat!(env!("OUT_DIR"), "/tables.rs"));
}

pub(crate) use tables::TRACE;

/// Checksum of a walk: every value changes it, the order does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Nested messages, numbers (of packed ones each) and pieces of bytes.
    pub(crate) values: u64,
    /// Numbers, summed up.
    pub(crate) sum: u64,
    /// Bytes of text and of bytes.
    pub(crate) bytes: u64,
}

/// Reads all fields.
///
/// # Errors
///
/// If a message is malformed, or a text that is `CHECKED` is not UTF-8.
pub(crate) fn walk<const CHECKED: bool>(
    bytes: &[u8],
    message: &'static Message,
    seen: &mut Seen,
) -> Result<(), DecodeError> {
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next() {
        match field.value {
            Value::Varint(v) | Value::Fixed64(v) => seen.number(v),
            Value::Fixed32(v) => seen.number(v.into()),
            Value::Bytes(bytes) => match message.0.get(field.id as usize) {
                Some(Payload::Nested(nested)) => {
                    seen.values += 1;
                    walk::<CHECKED>(bytes, nested, seen)?;
                }
                Some(Payload::PackedVarints) => varints(bytes, seen)?,
                Some(Payload::Packed32) => {
                    bytes.as_chunks().0.iter().for_each(|&v| seen.number(u32::from_le_bytes(v).into()));
                }
                Some(Payload::Packed64) => {
                    bytes.as_chunks().0.iter().for_each(|&v| seen.number(u64::from_le_bytes(v)));
                }
                payload => {
                    if CHECKED && matches!(payload, Some(Payload::Text)) && std::str::from_utf8(bytes).is_err() {
                        return Err(DecodeError { offset: fields.offset() });
                    }
                    seen.values += 1;
                    seen.bytes += bytes.len() as u64;
                }
            },
        }
    }
    if fields.is_malformed() { Err(DecodeError { offset: fields.offset() }) } else { Ok(()) }
}

fn varints(mut bytes: &[u8], seen: &mut Seen) -> Result<(), DecodeError> {
    while !bytes.is_empty() {
        let (v, len) = wire::decode_varint(bytes).ok_or(DecodeError { offset: 0 })?;
        seen.number(v);
        bytes = &bytes[len..];
    }
    Ok(())
}

impl Seen {
    #[inline]
    fn number(&mut self, v: u64) {
        self.values += 1;
        self.sum = self.sum.wrapping_add(v);
    }
}
