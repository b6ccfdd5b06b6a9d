//! What generated readers call: finding a field in an encoded message, and walking repeated ones.
//!
//! A reader has no index. Each accessor walks the message once and stops nowhere early, because the
//! last occurrence of a singular field wins (`docs/spec/protozero.md` §8.2). Whoever wants many fields
//! of a large message walks [`Fields`] instead.
//!
//! The types of the schema are spelled as [`kind`]s, which know the wire types that can carry them: an
//! occurrence with any other wire type is passed over, as if it were an unknown field.

mod declare;
pub mod kind;

use core::marker::PhantomData;

use crate::{Field, Fields, Message, Value};

use kind::Kind;

/// The last occurrence of field `id` in `message`, or `None` if there is none of kind `K`.
pub fn last<'a, K: Kind<'a>>(message: &'a [u8], id: u32) -> Option<K::Value> {
    let mut found = None;
    for field in Fields::new(message) {
        if field.id == id {
            found = K::read(field.value).or(found);
        }
    }
    found
}

/// Like [`last()`] for a nested message, whose reader is made from its bytes.
///
/// Occurrences are not merged: the last one is the value.
pub fn last_message<'a, R: From<&'a [u8]>>(message: &'a [u8], id: u32) -> Option<R> {
    last::<kind::Bytes>(message, id).map(R::from)
}

/// All values of the repeated scalar field `id`, packed or not, in wire order.
pub fn repeated<'a, K: Kind<'a>>(message: &'a [u8], id: u32) -> Repeated<'a, K> {
    Repeated { fields: Fields::new(message), id, packed: &[], kind: PhantomData }
}

/// The readers of all occurrences of the repeated message field `id`, in wire order.
pub fn messages<'a, R: From<&'a [u8]>>(message: &'a [u8], id: u32) -> Messages<'a, R> {
    Messages { elements: repeated(message, id), reader: PhantomData }
}

impl Message<'_> {
    /// Appends a packed repeated field of values of one kind. The iterator is walked twice, first for the length.
    #[inline]
    pub fn packed<K: kind::Scalar>(&mut self, field: u32, values: impl Iterator<Item = K::Native> + Clone) {
        K::write_packed(self, field, values);
    }
}

/// Iterator over the values of a repeated scalar, string or bytes field.
///
/// Takes both encodings, also mixed: one field per value, and many values packed into one field. A
/// packed payload that is cut off yields the values before the cut.
#[derive(Clone, Debug)]
pub struct Repeated<'a, K> {
    fields: Fields<'a>,
    id: u32,
    packed: &'a [u8],
    kind: PhantomData<K>,
}

impl<'a, K: Kind<'a>> Repeated<'a, K> {
    /// The values in the payload of one packed field.
    #[must_use]
    pub fn of_packed(packed: &'a [u8]) -> Self {
        Self { fields: Fields::new(&[]), id: 0, packed, kind: PhantomData }
    }
}

impl<'a, K: Kind<'a>> Iterator for Repeated<'a, K> {
    type Item = K::Value;

    fn next(&mut self) -> Option<K::Value> {
        loop {
            if let Some(value) = kind::next_packed(&mut self.packed, K::PACKED).and_then(K::read) {
                return Some(value);
            }
            let Field { id, value } = self.fields.next()?;
            if id != self.id {
                continue;
            }
            match value {
                Value::Bytes(packed) if K::PACKED.is_some() => self.packed = packed,
                value => {
                    if let Some(value) = K::read(value) {
                        return Some(value);
                    }
                }
            }
        }
    }
}

/// Iterator over the readers of a repeated message field.
#[derive(Clone, Debug)]
pub struct Messages<'a, R> {
    elements: Repeated<'a, kind::Bytes>,
    reader: PhantomData<R>,
}

impl<'a, R: From<&'a [u8]>> Iterator for Messages<'a, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        self.elements.next().map(R::from)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_last_occurrence_wins_and_foreign_wire_types_do_not_count() {
        let bytes = b"\x08\x01\x08\x02\x0a\x01x";
        assert_eq!(last::<kind::Uint32>(bytes, 1), Some(2));
        assert_eq!(last::<kind::Bytes>(bytes, 1), Some(&b"x"[..]));
        assert_eq!(last::<kind::Float>(bytes, 1), None);
        assert_eq!(last::<kind::Uint32>(bytes, 2), None);
    }

    #[test]
    fn packed_and_unpacked_values_mix() {
        let bytes = b"\x08\x01\x0a\x03\x02\xac\x02\x10\x09\x08\x03\x0a\x00\x0a\x02\x04\x80";
        assert_eq!(repeated::<kind::Int64>(bytes, 1).collect::<Vec<_>>(), [1, 2, 300, 3, 4]);
        assert_eq!(repeated::<kind::Sint32>(bytes, 1).collect::<Vec<_>>(), [-1, 1, 150, -2, 2]);
    }

    #[test]
    fn packed_fixed_values_stop_at_a_partial_element() {
        let bytes = b"\x0a\x06\x01\x00\x00\x00\x02\x00";
        assert_eq!(repeated::<kind::Sfixed32>(bytes, 1).collect::<Vec<_>>(), [1]);
        assert_eq!(repeated::<kind::Fixed64>(bytes, 1).count(), 0);
    }

    #[test]
    fn negative_numbers_are_sign_extended_on_the_wire_and_cut_when_read() {
        let bytes = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(last::<kind::Int32>(bytes, 1), Some(-1));
        assert_eq!(last::<kind::Uint32>(bytes, 1), Some(u32::MAX));
        assert_eq!(last::<kind::Int64>(bytes, 1), Some(-1));
    }
}
