//! Iterators over repeated fields.
//!
//! [`kind`]s stand for the types of the schema, and know the wire types that can carry them. An
//! occurrence with another wire type is skipped, like an unknown field.

mod declare;
mod elements;
pub mod kind;

use core::iter::FusedIterator;
use core::marker::PhantomData;

use crate::wire::WireType;
use crate::{Field, Fields, Message, Value};

#[doc(hidden)]
pub use elements::Elements;
use kind::Kind;

impl Message<'_> {
    /// Appends a packed repeated field of values of one kind. The iterator is walked twice, first
    /// for the length.
    #[inline]
    pub fn packed<K: kind::Scalar>(&mut self, field: u32, values: impl Iterator<Item = K::Native> + Clone) {
        K::write_packed(self, field, values);
    }
}

/// Iterator over the values of a repeated scalar, string or bytes field.
///
/// Accepts both encodings, also mixed, for any schema: one field per value, and many values packed
/// into one field. Ends at the last value, or in a packed field at the first malformed value (cut
/// off, or a varint of more than ten bytes); [`is_malformed`](Self::is_malformed) tells which.
///
/// ```
/// use esatto_protozero::{View, kind};
///
/// let view = View::new(b"\x08\x01\x0a\x02\x02\x03\x08\x04");
/// let mut values = view.repeated::<kind::Uint32>(1);
/// assert_eq!(values.by_ref().collect::<Vec<_>>(), [1, 2, 3, 4]);
/// assert!(!values.is_malformed());
///
/// let view = View::new(b"\x0a\x02\x02\x83"); // the second varint is not whole
/// let mut values = view.repeated::<kind::Uint32>(1);
/// assert_eq!(values.by_ref().collect::<Vec<_>>(), [2]);
/// assert!(values.is_malformed());
/// ```
#[derive(Clone, Debug)]
pub struct Repeated<'a, K> {
    /// Fields after the current packed field.
    fields: Fields<'a>,
    id: u32,
    /// Rest of the current packed field.
    packed: &'a [u8],
    kind: PhantomData<K>,
}

impl<'a, K: Kind<'a>> Repeated<'a, K> {
    #[inline]
    pub(crate) const fn new(message: &'a [u8], id: u32) -> Self {
        Self { fields: Fields::new(message), id, packed: &[], kind: PhantomData }
    }

    /// Makes an iterator over the values in the payload of one packed field.
    #[inline]
    #[must_use]
    pub const fn of_packed(packed: &'a [u8]) -> Self {
        Self { fields: Fields::new(&[]), id: 0, packed, kind: PhantomData }
    }

    /// Returns true after the last value if a packed field continues with bytes that are not a
    /// value.
    #[inline]
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        !self.packed.is_empty()
    }

    /// Returns the bytes of the current packed field that have not been consumed.
    #[inline]
    #[must_use]
    pub const fn rest_of_packed(&self) -> &'a [u8] {
        self.packed
    }

    /// Steps to the next occurrence: a value, or a packed field with at least one byte.
    fn next_field(&mut self) -> Option<Value<'a>> {
        loop {
            let Field { id, value } = self.fields.next()?;
            match value {
                _ if id != self.id => {}
                Value::Bytes(packed) if K::PACKED.is_some() => {
                    self.packed = packed;
                    if let Some(value) = self.next_packed() {
                        return Some(value);
                    }
                    if !packed.is_empty() {
                        return None;
                    }
                }
                value => return Some(value),
            }
        }
    }

    #[inline]
    fn next_packed(&mut self) -> Option<Value<'a>> {
        kind::next_packed(&mut self.packed, K::PACKED)
    }
}

impl<'a, K: Kind<'a>> Iterator for Repeated<'a, K> {
    type Item = K::Value;

    #[inline]
    fn next(&mut self) -> Option<K::Value> {
        loop {
            let value = if self.packed.is_empty() { self.next_field() } else { self.next_packed() };
            if let Some(value) = K::read(value?) {
                return Some(value);
            }
        }
    }

    /// Exact for values that are packed with a fixed width.
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let (rest, packed) = (self.fields.rest().len(), self.packed.len());
        match K::PACKED {
            Some(WireType::Fixed32) => (packed / 4, Some(packed / 4 + rest / 2)),
            Some(WireType::Fixed64) => (packed / 8, Some(packed / 8 + rest / 2)),
            Some(WireType::Varint) => (0, packed.checked_add(rest)),
            Some(WireType::LengthDelimited) | None => (0, Some(rest / 2)),
        }
    }
}

impl<'a, K: Kind<'a>> FusedIterator for Repeated<'a, K> {}

/// Iterator over the readers of a repeated message field.
#[derive(Clone, Debug)]
pub struct Messages<'a, R> {
    elements: Repeated<'a, kind::Bytes>,
    reader: PhantomData<R>,
}

impl<'a, R> Messages<'a, R> {
    #[inline]
    pub(crate) const fn new(elements: Repeated<'a, kind::Bytes>) -> Self {
        Self { elements, reader: PhantomData }
    }
}

impl<'a, R: From<&'a [u8]>> Iterator for Messages<'a, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        self.elements.next().map(R::from)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl<'a, R: From<&'a [u8]>> FusedIterator for Messages<'a, R> {}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use crate::{View, kind};

    #[test]
    fn the_last_occurrence_wins_and_foreign_wire_types_do_not_count() {
        let view = View::new(b"\x08\x01\x08\x02\x0a\x01x");
        assert_eq!(view.last::<kind::Uint32>(1), Some(2));
        assert_eq!(view.last::<kind::Bytes>(1), Some(&b"x"[..]));
        assert_eq!(view.last::<kind::Float>(1), None);
        assert_eq!(view.last::<kind::Uint32>(2), None);
    }

    #[test]
    fn packed_and_unpacked_values_mix() {
        let view = View::new(b"\x08\x01\x0a\x03\x02\xac\x02\x10\x09\x08\x03\x0a\x00\x0a\x02\x04\x80");
        let mut values = view.repeated::<kind::Int64>(1);
        assert_eq!(values.by_ref().collect::<Vec<_>>(), [1, 2, 300, 3, 4]);
        assert!(values.is_malformed());
        assert_eq!(values.rest_of_packed(), b"\x80");
        assert_eq!(view.repeated::<kind::Sint32>(1).collect::<Vec<_>>(), [-1, 1, 150, -2, 2]);
    }

    #[test]
    fn negative_numbers_are_sign_extended_on_the_wire_and_cut_when_read() {
        let view = View::new(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        assert_eq!(view.last::<kind::Int32>(1), Some(-1));
        assert_eq!(view.last::<kind::Uint32>(1), Some(u32::MAX));
        assert_eq!(view.last::<kind::Int64>(1), Some(-1));
        assert_eq!(view.last::<kind::Sint32>(1), Some(i32::MIN));
    }
}
