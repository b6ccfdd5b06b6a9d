//! [`View`]: an encoded message whose fields are found by number. Generated readers wrap it.
//!
//! A generated `FooReader` has one getter per field of the schema and comes in two forms with the
//! same getters:
//!
//! - `FooReader<'a>` is a slice of bytes. Every getter walks the message, because the last
//!   occurrence of a singular field wins (`docs/spec/protozero.md` §8.2). It does nothing in
//!   advance, which is best for one or two fields.
//! - `FooDecoder<'a>`, made by `FooReader::decoder` or `FooDecoder::decode`, has walked the message
//!   once and noted the place of each field, which is best for more fields. It lies where you put
//!   it, takes eight bytes per field of the schema, and never allocates either; see [`Index`].
//!
//! For both, a malformed field is the end of the message: the fields before it can be read, and
//! `check` returns its offset. Values are taken from the wire types that can carry them. An
//! occurrence with another wire type is skipped. Nested messages are readers again, and are not
//! checked in advance.
//!
//! For such a message the generator prints this code, slightly shortened here:
//!
//! ```
//! use esatto_protozero::{self as pz, encode_into};
//!
//! // message Order { optional uint64 id = 1; repeated sint32 amounts = 3; optional Order previous = 4; }
//! pz::message! {
//!     /// Writes an order.
//!     writer OrderWriter;
//!     /// Reads an order.
//!     reader OrderReader;
//!     decoder OrderDecoder;
//!     fields 1, 3, 4;
//! }
//!
//! impl<'a, I: pz::Lookup> OrderReader<'a, I> {
//!     pub fn id(&self) -> Option<u64> {
//!         self.0.last::<pz::kind::Uint64>(1)
//!     }
//!
//!     pub fn amounts(&self) -> pz::Repeated<'a, pz::kind::Sint32> {
//!         self.0.repeated(3)
//!     }
//!
//!     pub fn previous(&self) -> Option<OrderReader<'a>> {
//!         self.0.message(4)
//!     }
//! }
//!
//! let bytes = b"\x08\x05\x1a\x03\x02\x04\x05\x08\x07\x22\x02\x08\x01\x28\x63";
//!
//! // One field: no index.
//! assert_eq!(OrderReader::new(bytes).id(), Some(7), "the last one wins");
//!
//! // Many: one pass, and every getter knows where to look.
//! let order = OrderDecoder::decode(bytes);
//! assert_eq!(order.id(), Some(7));
//! assert_eq!(order.amounts().collect::<Vec<_>>(), [1, 2, -3]);
//! let previous = order.previous().unwrap().decoder();
//! assert_eq!((previous.id(), previous.previous().is_none()), (Some(1), true));
//!
//! // A newer version of the schema seems to have a field 5.
//! assert_eq!(order.unknown_fields().map(|field| field.id).collect::<Vec<_>>(), [5]);
//! assert_eq!(order.check(), Ok(()));
//! ```

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use crate::kind::{self, Kind};
use crate::{DecodeError, Field, Fields, Index, Messages, Repeated, Schema, Value};

pub use crate::lookup::{Lookup, Scan};

/// Encoded message whose fields are found by their numbers.
///
/// Generated readers wrap it. It also reads by number without a schema.
///
/// ```
/// use esatto_protozero::{View, kind};
///
/// let view = View::new(b"\x08\x01\x12\x02hi\x08\x02");
/// assert_eq!(view.last::<kind::Uint32>(1), Some(2));
/// assert_eq!(view.last::<kind::Bytes>(2), Some(&b"hi"[..]));
/// assert_eq!(view.last::<kind::Float>(1), None, "a varint is not a float");
/// assert_eq!(format!("{view:?}"), r#"View {1: Varint(1), 2: Bytes(b"hi"), 1: Varint(2)}"#);
/// ```
#[derive(Clone, Copy, Default)]
pub struct View<'a, I = Scan> {
    input: &'a [u8],
    index: I,
}

impl<'a> View<'a> {
    /// Makes a view that scans the message for each field.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { input, index: Scan }
    }
}

impl<'a, M: Schema> View<'a, Index<M>> {
    /// Walks the message once and notes the places of its fields.
    #[inline]
    #[must_use]
    pub fn indexed(input: &'a [u8]) -> Self {
        Self { input, index: Index::new(input) }
    }
}

impl<'a, I> View<'a, I> {
    /// Returns the encoded message.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.input
    }
}

impl<'a, I: Lookup> View<'a, I> {
    /// Returns the last occurrence of field `id`, or `None` if there is none of kind `K`.
    #[inline]
    #[must_use]
    pub fn last<K: Kind<'a>>(&self, id: u32) -> Option<K::Value> {
        self.index.last_of_kind::<K>(self.input, id)
    }

    /// Like [`last`](Self::last) for a nested message, whose reader is made from its bytes.
    ///
    /// Occurrences are not merged: the last one is the value.
    #[inline]
    #[must_use]
    pub fn message<R: From<&'a [u8]>>(&self, id: u32) -> Option<R> {
        self.last::<kind::Bytes>(id).map(R::from)
    }

    /// Iterates over all values of the repeated field `id`, packed or not, in the order of the
    /// bytes.
    #[inline]
    #[must_use]
    pub fn repeated<K: Kind<'a>>(&self, id: u32) -> Repeated<'a, K> {
        Repeated::new(self.index.span(self.input, id), id)
    }

    /// Iterates over the readers of all occurrences of the repeated message field `id`, in the
    /// order of the bytes.
    #[inline]
    #[must_use]
    pub fn messages<R: From<&'a [u8]>>(&self, id: u32) -> Messages<'a, R> {
        Messages::new(self.repeated(id))
    }

    /// Returns the field of `ids`, which are in ascending order, whose occurrence is the last: the
    /// member of a oneof that counts.
    #[inline]
    #[must_use]
    pub fn last_of(&self, ids: &[u32]) -> Option<Field<'a>> {
        self.index.last_of(self.input, ids)
    }

    /// Checks that the fields are whole. Those of nested messages are not checked.
    ///
    /// # Errors
    ///
    /// The offset of the first malformed field.
    #[inline]
    pub fn check(&self) -> Result<(), DecodeError> {
        self.index.check(self.input)
    }
}

/// Iterates over the fields in the order of the bytes. The iterator has the rest if the message is
/// malformed.
impl<I> fmt::Debug for View<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("View ")?;
        let mut fields = Fields::new(self.input);
        let mut map = f.debug_map();
        map.entries(fields.by_ref().map(|field| (field.id, field.value)));
        if fields.is_malformed() {
            map.entry(&format_args!("malformed"), &Value::Bytes(fields.rest()));
        }
        map.finish()
    }
}

/// Iterator over the fields of a message whose numbers its schema does not have.
pub struct UnknownFields<'a, M> {
    fields: Fields<'a>,
    schema: PhantomData<fn() -> M>,
}

impl<'a, M: Schema> UnknownFields<'a, M> {
    /// Makes an iterator over the fields of `input` that `M` does not know.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { fields: Fields::new(input), schema: PhantomData }
    }
}

impl<'a, M: Schema> Iterator for UnknownFields<'a, M> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.fields.find(|field| M::FIELDS.binary_search(&field.id).is_err())
    }
}

impl<M: Schema> FusedIterator for UnknownFields<'_, M> {}

impl<M> Clone for UnknownFields<'_, M> {
    fn clone(&self) -> Self {
        Self { fields: self.fields, schema: PhantomData }
    }
}

impl<M> fmt::Debug for UnknownFields<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnknownFields").field(&self.fields).finish()
    }
}
