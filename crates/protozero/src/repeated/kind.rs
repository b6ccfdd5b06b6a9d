//! The scalar types of the schema language, as types.

use core::marker::PhantomData;

use super::elements::Elements;
use crate::wire::{WireType, low_32_bits, read_varint, unsigned, unsigned32, unzigzag, unzigzag32, zigzag};
use crate::{Message, Value};

/// Field type: the Rust type of its values, and their decoding.
pub trait Kind<'a> {
    /// A decoded value.
    type Value;
    /// Layout of elements in a packed field; `None` if this kind cannot be packed.
    const PACKED: Option<WireType>;
    /// Wire types that can carry this kind. Integers are taken from any wire type that is not
    /// wider, as by the accessors of [`Field`](crate::Field) (`docs/spec/protozero.md` §8.1).
    const WIRE_TYPES: WireTypes;
    /// Returns the value, if `value` has one of these wire types.
    fn read(value: Value<'a>) -> Option<Self::Value>;
}

/// Set of wire types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireTypes(u8);

impl WireTypes {
    /// Makes the set of these wire types.
    #[must_use]
    pub const fn new(wire_types: &[WireType]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < wire_types.len() {
            set |= 1 << wire_types[i] as u8;
            i += 1;
        }
        Self(set)
    }

    /// Returns true if `value` has one of them.
    #[inline]
    #[must_use]
    pub const fn contain(self, value: Value<'_>) -> bool {
        self.0 & (1 << value.wire_type() as u8) != 0
    }
}

/// Kind whose values can be written, one at a time or packed.
pub trait Scalar: for<'a> Kind<'a, Value = Self::Native> {
    /// A value.
    type Native: Copy;
    /// Appends one field.
    fn write(message: &mut Message<'_>, id: u32, value: Self::Native);
    /// As `write`, by a call.
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    fn write_by_call(message: &mut Message<'_>, id: u32, value: Self::Native);
    /// Appends one field that holds all `values`. Without values it is an empty field.
    fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = Self::Native> + Clone);
    /// Appends one value to an open packed field.
    #[doc(hidden)]
    fn push(packed: &mut Elements<'_>, value: Self::Native);
}

/// Takes the next element off a packed payload, or returns `None` if it is malformed.
#[inline]
pub(crate) fn next_packed<'a>(packed: &mut &'a [u8], layout: Option<WireType>) -> Option<Value<'a>> {
    let (value, rest) = match layout? {
        WireType::Varint => match read_varint(packed) {
            (_, 0) => return None,
            (v, size) => (Value::Varint(v), packed.get(size..)?),
        },
        WireType::Fixed32 => {
            let (bytes, rest) = packed.split_first_chunk()?;
            (Value::Fixed32(u32::from_le_bytes(*bytes)), rest)
        }
        WireType::Fixed64 => {
            let (bytes, rest) = packed.split_first_chunk()?;
            (Value::Fixed64(u64::from_le_bytes(*bytes)), rest)
        }
        WireType::LengthDelimited => return None,
    };
    *packed = rest;
    Some(value)
}

const WIDE: WireTypes = WireTypes::new(&[WireType::Varint, WireType::Fixed64, WireType::Fixed32]);
const NARROW: WireTypes = WireTypes::new(&[WireType::Varint, WireType::Fixed32]);
const VARINT: WireTypes = WireTypes::new(&[WireType::Varint]);
const FIXED32: WireTypes = WireTypes::new(&[WireType::Fixed32]);
const FIXED64: WireTypes = WireTypes::new(&[WireType::Fixed64]);

#[inline]
fn wide(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Varint(v) | Value::Fixed64(v) => Some(v),
        Value::Fixed32(v) => Some(u64::from(v)),
        Value::Bytes(_) => None,
    }
}

#[inline]
fn narrow(value: Value<'_>) -> Option<u32> {
    match value {
        Value::Varint(v) => Some(low_32_bits(v)),
        Value::Fixed32(v) => Some(v),
        Value::Fixed64(_) | Value::Bytes(_) => None,
    }
}

#[inline]
fn varint(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Varint(v) => Some(v),
        _ => None,
    }
}

#[inline]
fn narrow_varint(value: Value<'_>) -> Option<u32> {
    varint(value).map(low_32_bits)
}

/// Each line is a kind: name, its Rust type, packed layout, wire types, reading, writing, writing
/// by a call, element and method of packing.
macro_rules! scalars {
    ($($(#[$doc:meta])* $kind:ident: $native:ty, $layout:ident, $wire_types:ident, $read:expr,
        $write:ident($cast:expr), $by_call:ident, $write_packed:ident($element:expr);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        impl<'a> Kind<'a> for $kind {
            type Value = $native;
            const PACKED: Option<WireType> = Some(WireType::$layout);
            const WIRE_TYPES: WireTypes = $wire_types;
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
            #[cfg(feature = "alloc")]
            #[inline]
            fn write_by_call(message: &mut Message<'_>, id: u32, value: $native) {
                message.$by_call(id, ($element)(value));
            }
            #[inline]
            fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = $native> + Clone) {
                message.$write_packed(id, values.map($element));
            }
            #[inline]
            fn push(packed: &mut Elements<'_>, value: $native) {
                packed.$write_packed(($element)(value));
            }
        }
    )*};
}

scalars! {
    /// `int32`.
    Int32: i32, Varint, NARROW, |v| narrow(v).map(|v| v as i32), int(i64::from), varint_by_call, packed_varints(|v| unsigned(i64::from(v)));
    /// `int64`.
    Int64: i64, Varint, WIDE, |v| wide(v).map(|v| v as i64), int(i64::from), varint_by_call, packed_varints(unsigned);
    /// `uint32`.
    Uint32: u32, Varint, NARROW, narrow, varint(u64::from), varint_by_call, packed_varints(u64::from);
    /// `uint64`.
    Uint64: u64, Varint, WIDE, wide, varint(u64::from), varint_by_call, packed_varints(u64::from);
    /// `sint32`.
    Sint32: i32, Varint, VARINT, |v| narrow_varint(v).map(unzigzag32), sint(i64::from), varint_by_call, packed_varints(|v| zigzag(i64::from(v)));
    /// `sint64`.
    Sint64: i64, Varint, VARINT, |v| varint(v).map(unzigzag), sint(i64::from), varint_by_call, packed_varints(zigzag);
    /// `fixed32`.
    Fixed32: u32, Fixed32, NARROW, narrow, fixed32(u32::from), fixed32_by_call, packed_fixed32(u32::from);
    /// `fixed64`.
    Fixed64: u64, Fixed64, WIDE, wide, fixed64(u64::from), fixed64_by_call, packed_fixed64(u64::from);
    /// `sfixed32`.
    Sfixed32: i32, Fixed32, NARROW, |v| narrow(v).map(|v| v as i32), fixed32(unsigned32), fixed32_by_call, packed_fixed32(unsigned32);
    /// `sfixed64`.
    Sfixed64: i64, Fixed64, WIDE, |v| wide(v).map(|v| v as i64), fixed64(unsigned), fixed64_by_call, packed_fixed64(unsigned);
    /// `float`.
    Float: f32, Fixed32, FIXED32, |v| match v {
        Value::Fixed32(bits) => Some(f32::from_bits(bits)),
        _ => None,
    }, float(f32::from), fixed32_by_call, packed_fixed32(f32::to_bits);
    /// `double`.
    Double: f64, Fixed64, FIXED64, |v| match v {
        Value::Fixed64(bits) => Some(f64::from_bits(bits)),
        _ => None,
    }, double(f64::from), fixed64_by_call, packed_fixed64(f64::to_bits);
    /// `bool`.
    Bool: bool, Varint, VARINT, |v| varint(v).map(|v| v != 0), bool(bool::from), varint_by_call, packed_varints(u64::from);
}

/// An open enumeration, generated as a newtype around its number.
#[derive(Clone, Copy, Debug)]
pub struct Enum<E>(PhantomData<E>);

impl<'a, E: From<i32>> Kind<'a> for Enum<E> {
    type Value = E;
    const PACKED: Option<WireType> = Some(WireType::Varint);
    const WIRE_TYPES: WireTypes = Int32::WIRE_TYPES;
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
    #[cfg(feature = "alloc")]
    #[inline]
    fn write_by_call(message: &mut Message<'_>, id: u32, value: E) {
        Int32::write_by_call(message, id, value.into());
    }
    #[inline]
    fn write_packed(message: &mut Message<'_>, id: u32, values: impl Iterator<Item = E> + Clone) {
        Int32::write_packed(message, id, values.map(E::into));
    }
    #[inline]
    fn push(packed: &mut Elements<'_>, value: E) {
        Int32::push(packed, value.into());
    }
}

/// `string`, `bytes` and the encoding of a nested message, as bytes of the input.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

impl<'a> Kind<'a> for Bytes {
    type Value = &'a [u8];
    const PACKED: Option<WireType> = None;
    const WIRE_TYPES: WireTypes = WireTypes::new(&[WireType::LengthDelimited]);
    #[inline]
    fn read(value: Value<'a>) -> Option<&'a [u8]> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}
