//! [`Message`]: the append-only message writer.

use core::fmt;

use super::stream::{Frame, Stream};
use crate::wire::{self, WireType};

/// Open message, which appends fields in the order of the calls.
///
/// Nothing can be taken back. A field that is written twice is there twice, and readers take the
/// last value. A nested message ([`begin`](Self::begin)) borrows its parent, and dropping it fills
/// in its length. No operation allocates, unless the sink does for more room or nesting is deeper
/// than [`INLINE_DEPTH`](crate::cursor::INLINE_DEPTH).
///
/// Leaking a message (`core::mem::forget`) leaves no wrong length: the whole root message is void.
///
/// Field numbers are not checked: the caller keeps them within 1 … 2^29 − 1.
pub struct Message<'w>(Frame<'w>);

impl Message<'_> {
    /// Begins a nested message in field `field`.
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn begin(&mut self, field: u32) -> Message<'_> {
        Message(self.0.begin(field))
    }

    /// Appends an unsigned integer (`uint32`, `uint64`) as varint.
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn varint(&mut self, field: u32, v: u64) {
        self.0.varint_field(wire::tag(field, WireType::Varint), v);
    }

    /// Appends a signed integer (`int32`, `int64`, enums) as varint; negative ones take ten bytes.
    #[inline]
    pub fn int(&mut self, field: u32, v: i64) {
        self.varint(field, wire::unsigned(v));
    }

    /// Appends a zigzag-encoded integer (`sint32`, `sint64`).
    #[inline]
    pub fn sint(&mut self, field: u32, v: i64) {
        self.varint(field, wire::zigzag(v));
    }

    /// Appends a `bool`.
    #[inline]
    pub fn bool(&mut self, field: u32, v: bool) {
        self.varint(field, u64::from(v));
    }

    /// Appends four bytes (`fixed32`, `sfixed32`).
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn fixed32(&mut self, field: u32, v: u32) {
        self.0.fixed_field(wire::tag(field, WireType::Fixed32), v.to_le_bytes());
    }

    /// Appends eight bytes (`fixed64`, `sfixed64`).
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn fixed64(&mut self, field: u32, v: u64) {
        self.0.fixed_field(wire::tag(field, WireType::Fixed64), v.to_le_bytes());
    }

    /// Appends a `float`.
    #[inline]
    pub fn float(&mut self, field: u32, v: f32) {
        self.fixed32(field, v.to_bits());
    }

    /// Appends a `double`.
    #[inline]
    pub fn double(&mut self, field: u32, v: f64) {
        self.fixed64(field, v.to_bits());
    }

    /// Appends a `bytes` field; an empty one is written too.
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn bytes(&mut self, field: u32, v: &[u8]) {
        self.0.bytes_field(wire::tag(field, WireType::LengthDelimited), v);
    }

    /// Appends a `string` field.
    #[inline]
    pub fn string(&mut self, field: u32, v: &str) {
        self.bytes(field, v.as_bytes());
    }

    /// Appends one `bytes` field made of several pieces.
    pub fn scattered_bytes(&mut self, field: u32, pieces: &[&[u8]]) {
        let len = pieces.iter().map(|p| p.len() as u64).sum();
        self.begin_bytes(field, len);
        for piece in pieces {
            self.0.write(piece);
        }
    }

    /// Appends a packed repeated field of varints. The iterator is walked twice, first for the
    /// length.
    pub fn packed_varints(&mut self, field: u32, values: impl Iterator<Item = u64> + Clone) {
        let len = values.clone().map(|v| wire::varint_size(v) as u64).sum();
        self.begin_bytes(field, len);
        for v in values {
            self.0.write_varint(v);
        }
    }

    /// Appends a packed repeated field of 32-bit values.
    pub fn packed_fixed32(&mut self, field: u32, values: impl Iterator<Item = u32> + Clone) {
        self.begin_bytes(field, values.clone().count() as u64 * 4);
        for v in values {
            self.0.write(&v.to_le_bytes());
        }
    }

    /// Appends a packed repeated field of 64-bit values.
    pub fn packed_fixed64(&mut self, field: u32, values: impl Iterator<Item = u64> + Clone) {
        self.begin_bytes(field, values.clone().count() as u64 * 8);
        for v in values {
            self.0.write(&v.to_le_bytes());
        }
    }

    fn begin_bytes(&mut self, field: u32, len: u64) {
        self.0.write_varint(u64::from(wire::tag(field, WireType::LengthDelimited)));
        self.0.write_varint(len);
    }

    /// Appends encoded fields verbatim. The caller guarantees that they are whole.
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline)]
    pub fn raw(&mut self, fields: &[u8]) {
        self.0.write(fields);
    }

    /// Appends a varint without a tag.
    #[inline]
    pub(crate) fn raw_varint(&mut self, v: u64) {
        self.0.write_varint(v);
    }

    /// As [`varint`](Self::varint), by a call, for code that is large and seldom runs.
    #[cfg(feature = "alloc")]
    #[inline(never)]
    pub(crate) fn varint_by_call(&mut self, field: u32, v: u64) {
        self.varint(field, v);
    }

    /// As [`fixed32`](Self::fixed32), by a call.
    #[cfg(feature = "alloc")]
    #[inline(never)]
    pub(crate) fn fixed32_by_call(&mut self, field: u32, v: u32) {
        self.fixed32(field, v);
    }

    /// As [`fixed64`](Self::fixed64), by a call.
    #[cfg(feature = "alloc")]
    #[inline(never)]
    pub(crate) fn fixed64_by_call(&mut self, field: u32, v: u64) {
        self.fixed64(field, v);
    }

    /// As [`bytes`](Self::bytes), by a call.
    #[cfg(feature = "alloc")]
    #[inline(never)]
    pub(crate) fn bytes_by_call(&mut self, field: u32, v: &[u8]) {
        self.bytes(field, v);
    }

    /// Returns the bytes of content so far. Lengths that are not filled in yet count with their
    /// full size.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if nothing was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Stream {
    /// Begins a root message, which has no length of its own.
    ///
    /// If an earlier root message was leaked, the stream is poisoned.
    #[inline]
    pub fn root(&mut self) -> Message<'_> {
        Message(self.root_frame())
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("len", &self.len()).finish_non_exhaustive()
    }
}
