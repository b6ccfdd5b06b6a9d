//! [`Owned`]: messages as values, for generated owned types.
//!
//! Owned types serve the control plane (configurations, requests), where a message is kept,
//! compared and passed on. They keep every unknown field byte for byte, and write it after the
//! known ones, so that fields of a newer peer are kept (`docs/spec/protozero.md` §10).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{DecodeError, Field, Fields, HeapBuffer, Message};

#[doc(hidden)]
pub mod element;

/// Largest nesting depth of messages that [`Owned::decode`] accepts.
///
/// Decoding recurses, so a hostile sender could otherwise exhaust the stack.
pub const MAX_DECODE_DEPTH: u32 = 100;

/// Decoding of a message that is a value. Generated code implements it.
///
/// It can be made an object, so that the common code exists once and not once per message. It is
/// separate from [`EncodeFields`], so that a program that only encodes a message does not contain
/// the code to decode it.
pub trait DecodeFields {
    /// Stores one field, or returns `false` if the schema has no such field of that wire type.
    ///
    /// `depth` is the number of further levels of nesting that are allowed.
    ///
    /// # Errors
    ///
    /// If a nested message is malformed or nests too deep; the offset counts from the start of the
    /// field's payload.
    fn merge_field(&mut self, field: Field<'_>, depth: u32) -> Result<bool, DecodeError>;

    /// The fields that the schema does not know, encoded.
    fn unknown_fields_mut(&mut self) -> &mut Vec<u8>;
}

/// Encoding of a message that is a value. Generated code implements it.
pub trait EncodeFields {
    /// Appends all fields to `message`, unknown ones last.
    fn write_to(&self, message: &mut Message<'_>);
}

/// Message that is a value.
///
/// Users call [`decode`](Self::decode) and [`encode`](Self::encode).
pub trait Owned: DecodeFields + EncodeFields + Default + Clone + PartialEq + fmt::Debug {
    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// If `bytes`, or a nested message that the schema knows, is not a sequence of whole fields, or
    /// nests deeper than [`MAX_DECODE_DEPTH`].
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        message.merge(bytes, MAX_DECODE_DEPTH)?;
        Ok(message)
    }

    /// Adds the fields of an encoded message to this one: singular fields are replaced, repeated
    /// ones appended to, nested messages merged.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode). The fields before the error have been merged.
    fn merge(&mut self, bytes: &[u8], depth: u32) -> Result<(), DecodeError> {
        merge(self, bytes, depth)
    }

    /// The encoded message.
    fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

impl<M: DecodeFields + EncodeFields + Default + Clone + PartialEq + fmt::Debug> Owned for M {}

fn merge(message: &mut dyn DecodeFields, bytes: &[u8], depth: u32) -> Result<(), DecodeError> {
    each_field(bytes, &mut |field, encoded| {
        if !message.merge_field(field, depth)? {
            message.unknown_fields_mut().extend_from_slice(encoded);
        }
        Ok(())
    })
}

/// Takes a field, decoded and encoded.
type TakeField<'t> = dyn FnMut(Field<'_>, &[u8]) -> Result<(), DecodeError> + 't;

/// Calls `take` with each field.
fn each_field(bytes: &[u8], take: &mut TakeField<'_>) -> Result<(), DecodeError> {
    let mut fields = Fields::new(bytes);
    while let Some((field, encoded)) = fields.next_with_bytes() {
        take(field, encoded).map_err(|error| {
            let payload = fields.offset() - field.as_bytes().len();
            DecodeError { offset: payload + error.offset }
        })?;
    }
    fields.check()
}

fn encode(message: &dyn EncodeFields) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    message.write_to(&mut buffer.message());
    buffer.to_vec()
}

/// The members of a `oneof`, of which a value holds at most one.
///
/// Generated code implements it for the enumeration of a oneof.
pub trait Oneof: Sized {
    /// Makes `slot` the member that `field` holds, or returns `false` if there is no such member of
    /// that wire type.
    ///
    /// A message is merged into the one that is there already, if it is the same member.
    ///
    /// # Errors
    ///
    /// As [`DecodeFields::merge_field`].
    fn merge_field(slot: &mut Option<Self>, field: Field<'_>, depth: u32) -> Result<bool, DecodeError>;

    /// Appends the member to `message`.
    fn write_to(&self, message: &mut Message<'_>);
}

impl<M: DecodeFields> DecodeFields for Box<M> {
    fn merge_field(&mut self, field: Field<'_>, depth: u32) -> Result<bool, DecodeError> {
        M::merge_field(self, field, depth)
    }

    fn unknown_fields_mut(&mut self) -> &mut Vec<u8> {
        M::unknown_fields_mut(self)
    }
}

impl<M: EncodeFields> EncodeFields for Box<M> {
    fn write_to(&self, message: &mut Message<'_>) {
        M::write_to(self, message);
    }
}

/// Protobuf `string`: bytes that are meant as text.
///
/// Nothing validates the text that peers send, and neither does this type. It is converted where
/// text is needed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtoString(Vec<u8>);

impl ProtoString {
    /// An empty string.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text, if it is valid UTF-8.
    #[must_use]
    pub fn to_str(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }

    /// Returns the text, with `U+FFFD` in place of bytes that are not UTF-8. Allocates only in that
    /// case.
    #[must_use]
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl core::ops::Deref for ProtoString {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ProtoString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl core::borrow::Borrow<[u8]> for ProtoString {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for ProtoString {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ProtoString {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&[u8]> for ProtoString {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for ProtoString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl PartialEq<str> for ProtoString {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for ProtoString {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<String> for ProtoString {
    fn eq(&self, other: &String) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Debug for ProtoString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str_lossy(), f)
    }
}

impl fmt::Display for ProtoString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str_lossy())
    }
}

/// Names that generated code uses through this crate, so that it needs no `extern crate alloc`.
#[doc(hidden)]
pub mod rt {
    pub use alloc::boxed::Box;
    pub use alloc::collections::BTreeMap;
    pub use alloc::vec::Vec;
}

/// Functions for generated `merge_field`. Each stores one field, and returns true if its wire type
/// fits.
///
/// They are not inlined: there are hundreds of fields, and none of them is hot.
#[doc(hidden)]
pub mod take {
    use alloc::collections::BTreeMap;

    use super::element::Element;
    use super::{DecodeError, DecodeFields, Field, Oneof, ProtoString, Vec, each_field};
    use crate::kind::{self, Kind, Scalar};
    use crate::{Repeated, Value};

    /// A singular scalar.
    #[inline(never)]
    pub fn scalar<K: Scalar>(slot: &mut Option<K::Native>, field: Field<'_>) -> Result<bool, DecodeError> {
        let value = K::read(field.value);
        *slot = value.or(*slot);
        Ok(value.is_some())
    }

    /// One value of a repeated scalar, or many packed ones, which have to be whole.
    #[inline(never)]
    pub fn scalars<K: Scalar>(slot: &mut Vec<K::Native>, field: Field<'_>) -> Result<bool, DecodeError> {
        let fits = match field.value {
            Value::Bytes(packed) => {
                let mut values = Repeated::<K>::of_packed(packed);
                slot.extend(&mut values);
                if values.is_malformed() {
                    return Err(DecodeError { offset: packed.len() - values.rest_of_packed().len() });
                }
                true
            }
            value => K::read(value).map(|value| slot.push(value)).is_some(),
        };
        Ok(fits)
    }

    /// A singular `string`.
    #[inline(never)]
    pub fn string(slot: &mut Option<ProtoString>, field: Field<'_>) -> Result<bool, DecodeError> {
        let value = kind::Bytes::read(field.value);
        Ok(value.map(|bytes| *slot = Some(bytes.into())).is_some())
    }

    /// One of repeated `string`s.
    #[inline(never)]
    pub fn strings(slot: &mut Vec<ProtoString>, field: Field<'_>) -> Result<bool, DecodeError> {
        let value = kind::Bytes::read(field.value);
        Ok(value.map(|bytes| slot.push(bytes.into())).is_some())
    }

    /// A singular `bytes`.
    #[inline(never)]
    pub fn bytes(slot: &mut Option<Vec<u8>>, field: Field<'_>) -> Result<bool, DecodeError> {
        let value = kind::Bytes::read(field.value);
        Ok(value.map(|bytes| *slot = Some(bytes.into())).is_some())
    }

    /// One of repeated `bytes`.
    #[inline(never)]
    pub fn byte_strings(slot: &mut Vec<Vec<u8>>, field: Field<'_>) -> Result<bool, DecodeError> {
        let value = kind::Bytes::read(field.value);
        Ok(value.map(|bytes| slot.push(bytes.into())).is_some())
    }

    /// A singular message; a second occurrence is merged into the first.
    pub fn message<M: DecodeFields + Default>(
        slot: &mut Option<M>,
        field: Field<'_>,
        depth: u32,
    ) -> Result<bool, DecodeError> {
        if !matches!(field.value, Value::Bytes(_)) {
            return Ok(false);
        }
        match slot {
            Some(message) => merge(message, field, depth),
            None => merge(slot.insert(M::default()), field, depth),
        }
    }

    /// One of repeated messages. A malformed one is stored as far as it could be read.
    pub fn messages<M: DecodeFields + Default>(
        slot: &mut Vec<M>,
        field: Field<'_>,
        depth: u32,
    ) -> Result<bool, DecodeError> {
        if !matches!(field.value, Value::Bytes(_)) {
            return Ok(false);
        }
        slot.push(M::default());
        slot.last_mut().map_or(Ok(false), |message| merge(message, field, depth))
    }

    /// A further occurrence of a message that is there already.
    pub fn merge(message: &mut dyn DecodeFields, field: Field<'_>, depth: u32) -> Result<bool, DecodeError> {
        let Value::Bytes(bytes) = field.value else { return Ok(false) };
        super::merge(message, bytes, depth.checked_sub(1).ok_or(DecodeError { offset: 0 })?)?;
        Ok(true)
    }

    /// A member of a oneof, which replaces the previous member.
    pub fn member<T: Element, E>(
        slot: &mut Option<E>,
        field: Field<'_>,
        depth: u32,
        member: fn(T::Value) -> E,
    ) -> Result<bool, DecodeError> {
        let mut value = None;
        let fits = T::take(&mut value, field, depth)?;
        if let Some(value) = value {
            *slot = Some(member(value));
        }
        Ok(fits)
    }

    /// Any member of a oneof.
    pub fn oneof<E: Oneof>(slot: &mut Option<E>, field: Field<'_>, depth: u32) -> Result<bool, DecodeError> {
        E::merge_field(slot, field, depth)
    }

    /// An entry of a map. Missing parts have their default, and the last entry with a key wins.
    pub fn map<K: Element<Value: Default + Ord>, V: Element<Value: Default>>(
        slot: &mut BTreeMap<K::Value, V::Value>,
        field: Field<'_>,
        depth: u32,
    ) -> Result<bool, DecodeError> {
        let Value::Bytes(entry) = field.value else { return Ok(false) };
        let depth = depth.checked_sub(1).ok_or(DecodeError { offset: 0 })?;
        let (mut key, mut value) = (None, None);
        each_field(entry, &mut |field, _| {
            match field.id {
                1 => K::take(&mut key, field, depth)?,
                2 => V::take(&mut value, field, depth)?,
                _ => false,
            };
            Ok(())
        })?;
        slot.insert(key.unwrap_or_default(), value.unwrap_or_default());
        Ok(true)
    }
}

/// Functions for generated `write_to`. Each appends the content of a slot.
#[doc(hidden)]
pub mod put {
    use alloc::collections::BTreeMap;

    use super::element::Element;
    use super::{EncodeFields, Message, Oneof};
    use crate::kind::Scalar;

    /// A singular scalar.
    pub fn scalar<K: Scalar>(message: &mut Message<'_>, id: u32, slot: Option<K::Native>) {
        if let Some(value) = slot {
            K::write_by_call(message, id, value);
        }
    }

    /// A repeated scalar, one field per value.
    pub fn scalars<K: Scalar>(message: &mut Message<'_>, id: u32, slot: &[K::Native]) {
        for value in slot {
            K::write_by_call(message, id, *value);
        }
    }

    /// A repeated scalar, packed into one field; nothing if there are no values.
    pub fn packed<K: Scalar>(message: &mut Message<'_>, id: u32, slot: &[K::Native]) {
        if !slot.is_empty() {
            K::write_packed(message, id, slot.iter().copied());
        }
    }

    /// A `string` or `bytes` field, singular (an `Option`) or repeated (a slice).
    #[inline(never)]
    pub fn bytes<'a, T: AsRef<[u8]> + 'a>(message: &mut Message<'_>, id: u32, slot: impl IntoIterator<Item = &'a T>) {
        for value in slot {
            message.bytes_by_call(id, value.as_ref());
        }
    }

    /// A message field, singular (an `Option`) or repeated (a slice).
    pub fn messages<'a, M: EncodeFields + 'a>(
        message: &mut Message<'_>,
        id: u32,
        slot: impl IntoIterator<Item = &'a M>,
    ) {
        for value in slot {
            one_message(message, id, value);
        }
    }

    #[inline(never)]
    fn one_message(message: &mut Message<'_>, id: u32, value: &dyn EncodeFields) {
        value.write_to(&mut message.begin(id));
    }

    /// A member of a oneof.
    pub fn member<T: Element>(message: &mut Message<'_>, id: u32, value: &T::Value) {
        T::put(message, id, value);
    }

    /// The member that a oneof holds.
    pub fn oneof<E: Oneof>(message: &mut Message<'_>, slot: &Option<E>) {
        if let Some(member) = slot {
            member.write_to(message);
        }
    }

    /// The entries of a map, in the order of the keys.
    pub fn map<K: Element, V: Element>(message: &mut Message<'_>, id: u32, slot: &BTreeMap<K::Value, V::Value>) {
        for (key, value) in slot {
            let mut entry = message.begin(id);
            K::put(&mut entry, 1, key);
            V::put(&mut entry, 2, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn strings_are_bytes_that_show_as_text() {
        let text = ProtoString::from("naïve");
        assert_eq!(text, "naïve");
        assert_eq!((format!("{text}"), format!("{text:?}")), ("naïve".into(), "\"naïve\"".into()));
        assert_eq!(text.to_str(), Some("naïve"));
        assert_eq!(&text[..2], b"na");

        let broken = ProtoString::from(&b"a\xffb"[..]);
        assert_eq!(broken.to_str(), None);
        assert_eq!(broken.to_str_lossy(), "a\u{fffd}b");
        assert_eq!(broken.into_bytes(), b"a\xffb");
    }
}
