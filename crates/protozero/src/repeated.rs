//! What generated readers call: finding a field in an encoded message, and walking repeated ones.
//!
//! A reader has no index. Each accessor walks the message once and stops nowhere early, because the
//! last occurrence of a singular field wins (`docs/spec/protozero.md` §8.2). Whoever wants many fields
//! of a large message walks [`Fields`] instead.
//!
//! The types of the schema are spelled as [`kind`]s, which know the wire types that can carry them: an
//! occurrence with any other wire type is passed over, as if it were an unknown field.

use core::marker::PhantomData;

use crate::wire::{WireType, decode_varint};
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

/// The scalar types of the schema language, as types.
pub mod kind {
    use core::marker::PhantomData;

    use super::{Value, WireType, decode_varint};
    use crate::Message;
    use crate::wire::{unzigzag, zigzag};

    /// A field type: what Rust type its values have and how they come off the wire.
    pub trait Kind<'a> {
        /// A decoded value.
        type Value;
        /// How elements are laid out in a packed field; `None` if this kind cannot be packed.
        const PACKED: Option<WireType>;
        /// The value, if `value` has a wire type that can carry this kind.
        ///
        /// Integers are taken from any wire type that is not wider than they are, as upstream's
        /// accessors do (`docs/spec/protozero.md` §8.1).
        fn read(value: Value<'a>) -> Option<Self::Value>;
    }

    /// A kind whose values can be written, one at a time or packed.
    pub trait Scalar: for<'a> Kind<'a, Value = Self::Native> {
        /// A value.
        type Native: Copy;
        /// Appends one field.
        fn write(message: &mut Message<'_>, id: u32, value: Self::Native);
        /// Appends one field that holds all `values`; nothing at all is also a field.
        fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = Self::Native> + Clone);
    }

    /// Takes the next element off a packed payload; a malformed rest is dropped.
    pub(crate) fn next_packed<'a>(packed: &mut &'a [u8], layout: Option<WireType>) -> Option<Value<'a>> {
        if packed.is_empty() {
            return None;
        }
        let rest = core::mem::take(packed);
        let (value, size) = match layout? {
            WireType::Varint => decode_varint(rest).map(|(v, n)| (Value::Varint(v), n))?,
            WireType::Fixed32 => (Value::Fixed32(u32::from_le_bytes(*rest.first_chunk()?)), 4),
            WireType::Fixed64 => (Value::Fixed64(u64::from_le_bytes(*rest.first_chunk()?)), 8),
            WireType::LengthDelimited => return None,
        };
        *packed = &rest[size..];
        Some(value)
    }

    fn wide(value: Value<'_>) -> Option<u64> {
        match value {
            Value::Varint(v) | Value::Fixed64(v) => Some(v),
            Value::Fixed32(v) => Some(u64::from(v)),
            Value::Bytes(_) => None,
        }
    }

    fn narrow(value: Value<'_>) -> Option<u32> {
        match value {
            Value::Varint(v) => Some(v as u32),
            Value::Fixed32(v) => Some(v),
            Value::Fixed64(_) | Value::Bytes(_) => None,
        }
    }

    fn varint(value: Value<'_>) -> Option<u64> {
        match value {
            Value::Varint(v) => Some(v),
            _ => None,
        }
    }

    /// One kind a line: name, its Rust type, packed layout, reading, writing, element and method of packing.
    macro_rules! scalars {
        ($($(#[$doc:meta])* $kind:ident: $native:ty, $layout:ident, $read:expr,
            $write:ident($cast:expr), $write_packed:ident($element:expr);)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $kind;

            impl<'a> Kind<'a> for $kind {
                type Value = $native;
                const PACKED: Option<WireType> = Some(WireType::$layout);
                #[inline]
                fn read(value: Value<'a>) -> Option<$native> {
                    let read: fn(Value<'a>) -> Option<$native> = $read;
                    read(value)
                }
            }

            impl Scalar for $kind {
                type Native = $native;
                #[inline]
                fn write(message: &mut Message<'_>, id: u32, value: $native) {
                    message.$write(id, ($cast)(value));
                }
                #[inline]
                fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = $native> + Clone) {
                    message.$write_packed(id, values.map($element));
                }
            }
        )*};
    }

    scalars! {
        /// `int32`.
        Int32: i32, Varint, |v| narrow(v).map(|v| v as i32), int(i64::from), packed_varints(|v| i64::from(v) as u64);
        /// `int64`.
        Int64: i64, Varint, |v| wide(v).map(|v| v as i64), int(i64::from), packed_varints(|v| v as u64);
        /// `uint32`.
        Uint32: u32, Varint, narrow, varint(u64::from), packed_varints(u64::from);
        /// `uint64`.
        Uint64: u64, Varint, wide, varint(u64::from), packed_varints(u64::from);
        /// `sint32`.
        Sint32: i32, Varint, |v| varint(v).map(|v| unzigzag(v) as i32), sint(i64::from), packed_varints(|v| zigzag(i64::from(v)));
        /// `sint64`.
        Sint64: i64, Varint, |v| varint(v).map(unzigzag), sint(i64::from), packed_varints(zigzag);
        /// `fixed32`.
        Fixed32: u32, Fixed32, narrow, fixed32(u32::from), packed_fixed32(u32::from);
        /// `fixed64`.
        Fixed64: u64, Fixed64, wide, fixed64(u64::from), packed_fixed64(u64::from);
        /// `sfixed32`.
        Sfixed32: i32, Fixed32, |v| narrow(v).map(|v| v as i32), fixed32(|v: i32| v as u32), packed_fixed32(|v: i32| v as u32);
        /// `sfixed64`.
        Sfixed64: i64, Fixed64, |v| wide(v).map(|v| v as i64), fixed64(|v: i64| v as u64), packed_fixed64(|v: i64| v as u64);
        /// `float`.
        Float: f32, Fixed32, |v| match v {
            Value::Fixed32(bits) => Some(f32::from_bits(bits)),
            _ => None,
        }, float(f32::from), packed_fixed32(f32::to_bits);
        /// `double`.
        Double: f64, Fixed64, |v| match v {
            Value::Fixed64(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }, double(f64::from), packed_fixed64(f64::to_bits);
        /// `bool`.
        Bool: bool, Varint, |v| varint(v).map(|v| v != 0), bool(bool::from), packed_varints(u64::from);
    }

    /// An open enumeration, generated as a newtype around its number.
    #[derive(Clone, Copy, Debug)]
    pub struct Enum<E>(PhantomData<E>);

    impl<'a, E: From<i32>> Kind<'a> for Enum<E> {
        type Value = E;
        const PACKED: Option<WireType> = Some(WireType::Varint);
        #[inline]
        fn read(value: Value<'a>) -> Option<E> {
            Int32::read(value).map(E::from)
        }
    }

    impl<E: From<i32> + Into<i32> + Copy> Scalar for Enum<E> {
        type Native = E;
        #[inline]
        fn write(message: &mut Message<'_>, id: u32, value: E) {
            Int32::write(message, id, value.into());
        }
        #[inline]
        fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = E> + Clone) {
            Int32::write_packed(message, id, values.map(E::into));
        }
    }

    /// `string`, `bytes` and the encoding of a nested message, as bytes of the input.
    #[derive(Clone, Copy, Debug)]
    pub struct Bytes;

    impl<'a> Kind<'a> for Bytes {
        type Value = &'a [u8];
        const PACKED: Option<WireType> = None;
        #[inline]
        fn read(value: Value<'a>) -> Option<&'a [u8]> {
            match value {
                Value::Bytes(bytes) => Some(bytes),
                _ => None,
            }
        }
    }
}

/// Declares the writer and the reader of a message; generated code adds the methods of its fields.
#[doc(hidden)]
#[macro_export]
macro_rules! message {
    ($(#[$writer_doc:meta])* writer $writer:ident; $(#[$reader_doc:meta])* reader $reader:ident;) => {
        $(#[$writer_doc])*
        #[derive(Debug)]
        pub struct $writer<'w>($crate::Message<'w>);

        impl<'w> From<$crate::Message<'w>> for $writer<'w> {
            #[inline]
            fn from(message: $crate::Message<'w>) -> Self {
                Self(message)
            }
        }

        impl<'w> $writer<'w> {
            /// The untyped message.
            #[inline]
            pub fn message(&mut self) -> &mut $crate::Message<'w> {
                &mut self.0
            }
        }

        $(#[$reader_doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $reader<'a>(&'a [u8]);

        impl<'a> From<&'a [u8]> for $reader<'a> {
            #[inline]
            fn from(bytes: &'a [u8]) -> Self {
                Self(bytes)
            }
        }

        impl<'a> $reader<'a> {
            /// A view over an encoded message; where it is malformed, it seems to end.
            #[inline]
            #[must_use]
            pub const fn new(bytes: &'a [u8]) -> Self {
                Self(bytes)
            }

            /// A view over an encoded message whose fields are whole; those of nested messages are not looked at.
            ///
            /// # Errors
            ///
            /// If `bytes` is malformed.
            #[inline]
            pub fn parse(bytes: &'a [u8]) -> Result<Self, $crate::DecodeError> {
                $crate::Fields::new(bytes).check()?;
                Ok(Self(bytes))
            }

            /// The encoded message.
            #[inline]
            #[must_use]
            pub const fn as_bytes(&self) -> &'a [u8] {
                self.0
            }

            /// All fields, in the order of the bytes.
            #[inline]
            #[must_use]
            pub const fn fields(&self) -> $crate::Fields<'a> {
                $crate::Fields::new(self.0)
            }
        }
    };
}

/// Declares an open enumeration: a newtype around the number, with a constant for each value of the schema.
#[doc(hidden)]
#[macro_export]
macro_rules! open_enum {
    (
        $(#[$doc:meta])*
        enum $name:ident, default $default:literal {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $text:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i32);

        #[allow(missing_docs, non_upper_case_globals)]
        impl $name {
            $($(#[$value_doc])* pub const $value: Self = Self($number);)*
        }

        impl $name {
            /// The name of the value, if the schema has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                // Two names may share a number.
                #[allow(unreachable_patterns)]
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl Default for $name {
            #[inline]
            fn default() -> Self {
                Self($default)
            }
        }

        impl From<i32> for $name {
            #[inline]
            fn from(number: i32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for i32 {
            #[inline]
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl core::fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
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
