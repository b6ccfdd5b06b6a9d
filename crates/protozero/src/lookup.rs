//! [`Lookup`]: the ways in which a message finds its fields by number.

use crate::kind::{Kind, WireTypes};
use crate::{DecodeError, Field, Fields, Value};

/// Way in which a [`View`](crate::View) finds fields: [`Scan`] or [`Index`](crate::Index).
pub trait Lookup: sealed::Sealed {
    /// Finds the last occurrence of a field with one of the wire types.
    #[doc(hidden)]
    fn last<'a>(&self, input: &'a [u8], id: u32, wire_types: WireTypes) -> Option<Value<'a>>;

    /// That value.
    #[doc(hidden)]
    #[inline]
    fn last_of_kind<'a, K: Kind<'a>>(&self, input: &'a [u8], id: u32) -> Option<K::Value> {
        self.last(input, id, K::WIRE_TYPES).and_then(K::read)
    }

    /// A part of the input with all occurrences of a field in it.
    #[doc(hidden)]
    fn span<'a>(&self, input: &'a [u8], id: u32) -> &'a [u8];

    #[doc(hidden)]
    fn last_of<'a>(&self, input: &'a [u8], ids: &[u32]) -> Option<Field<'a>>;

    #[doc(hidden)]
    fn check(&self, input: &[u8]) -> Result<(), DecodeError>;
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "other crates cannot implement it")]
    pub trait Sealed {}
}

/// Search without an index: it walks the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scan;

impl sealed::Sealed for Scan {}

impl Lookup for Scan {
    // Neither generic nor inlined: one loop for all getters of all messages.
    #[inline(never)]
    fn last<'a>(&self, input: &'a [u8], id: u32, wire_types: WireTypes) -> Option<Value<'a>> {
        let mut found = None;
        for field in Fields::new(input) {
            if field.id == id && wire_types.contain(field.value) {
                found = Some(field.value);
            }
        }
        found
    }

    // This walks the message anyway: a call for each getter is smaller than taking the value out of
    // an enumeration.
    #[inline(never)]
    fn last_of_kind<'a, K: Kind<'a>>(&self, input: &'a [u8], id: u32) -> Option<K::Value> {
        self.last(input, id, K::WIRE_TYPES).and_then(K::read)
    }

    #[inline]
    fn span<'a>(&self, input: &'a [u8], _: u32) -> &'a [u8] {
        input
    }

    #[inline(never)]
    fn last_of<'a>(&self, input: &'a [u8], ids: &[u32]) -> Option<Field<'a>> {
        Fields::new(input).filter(|field| ids.binary_search(&field.id).is_ok()).last()
    }

    fn check(&self, input: &[u8]) -> Result<(), DecodeError> {
        Fields::new(input).check()
    }
}
