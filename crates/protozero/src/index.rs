//! [`Index`]: the places of a message's fields, found in one pass (`docs/spec/protozero.md` §8.2).
//!
//! An index has a slot for each field of the schema. A slot of eight bytes does not hold a value,
//! but the places of the first and the last occurrence. That is all that a getter needs, for a
//! singular field (the last occurrence wins), a repeated field (from the first to the last), or a
//! oneof (the member whose last occurrence is last). A slot has a fixed size for any number of
//! repetitions, and an index has no pointers, so it can be moved.
//!
//! A table of constants maps field numbers to slots. The pass looks slots up in it. In getters the
//! compiler folds it into the number of a slot. All messages share the other code.
//!
//! Fields with large numbers ([`MAX_INDEXED_ID`]), fields of a message with very many fields
//! ([`MAX_SLOTS`]), and extensions have no slot. They are found by scanning, as without an index.

use core::fmt;

use crate::kind::WireTypes;
use crate::lookup::{Lookup, Scan, sealed};
use crate::{DecodeError, Field, Fields, Value};

/// Largest field number with a slot in an [`Index`].
pub const MAX_INDEXED_ID: u32 = 999;

/// Largest number of slots of an [`Index`], which bounds its size to 2 KiB.
pub const MAX_SLOTS: usize = 255;

/// Entry of the table for a field without a slot.
const NO_SLOT: u8 = u8::MAX;

/// Fields of a message's schema. Generated code implements it for a message's reader.
pub trait Schema {
    /// The numbers of its fields, ascending.
    const FIELDS: &'static [u32];

    /// The slot of each field number, up to the largest that has one.
    #[doc(hidden)]
    const TABLE: &'static [u8];

    /// An array of as many slots as needed.
    #[doc(hidden)]
    type Slots: Slots;
}

/// Places of the fields of a message of schema `M`.
///
/// Takes eight bytes for each of up to [`MAX_SLOTS`] fields; one pass over the message fills it.
/// Messages of 4 GiB and more (which cannot be nested in any other) are not indexed, but scanned.
#[derive(Clone)]
pub struct Index<M: Schema> {
    slots: M::Slots,
    /// Number of bytes at the end that are not a field.
    unread: usize,
}

impl<M: Schema> Index<M> {
    #[inline]
    pub(crate) fn new(input: &[u8]) -> Self {
        let mut slots = M::Slots::EMPTY;
        let unread = fill(input, M::TABLE, slots.as_mut());
        Self { slots, unread }
    }

    /// Returns the slot of a field, if it has one.
    #[inline]
    fn slot(&self, id: u32) -> Option<Slot> {
        let slot = *M::TABLE.get(id as usize)?;
        self.slots.as_ref().get(usize::from(slot)).copied()
    }
}

impl<M: Schema> fmt::Debug for Index<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = M::FIELDS.iter().filter(|id| self.slot(**id).is_some_and(|slot| slot.last != 0));
        f.write_str("Index ")?;
        f.debug_set().entries(present).finish()
    }
}

impl<M: Schema> sealed::Sealed for Index<M> {}

impl<M: Schema> Lookup for Index<M> {
    #[inline]
    fn last<'a>(&self, input: &'a [u8], id: u32, wire_types: WireTypes) -> Option<Value<'a>> {
        match self.slot(id) {
            Some(slot) if slot.last == 0 => None,
            Some(slot) => slot.last(input, id, wire_types),
            None => Scan.last(input, id, wire_types),
        }
    }

    #[inline]
    fn span<'a>(&self, input: &'a [u8], id: u32) -> &'a [u8] {
        match self.slot(id) {
            Some(slot) if slot.last == 0 => &[],
            Some(slot) => slot.span(input),
            None => input,
        }
    }

    fn last_of<'a>(&self, input: &'a [u8], ids: &[u32]) -> Option<Field<'a>> {
        let mut least = Slot::EMPTY;
        for id in ids {
            match self.slot(*id) {
                Some(slot) if slot.last == 0 => {}
                Some(slot) if slot.last != UNKNOWN => {
                    if least.last == 0 || slot.last < least.last {
                        least = slot;
                    }
                }
                _ => return Scan.last_of(input, ids),
            }
        }
        if least.last == 0 { None } else { least.last_field(input) }
    }

    #[inline]
    fn check(&self, input: &[u8]) -> Result<(), DecodeError> {
        if self.unread == 0 { Ok(()) } else { Err(DecodeError { offset: input.len() - self.unread }) }
    }
}

/// Places of the first and the last occurrence of a field, in bytes from the end of the message.
///
/// They count from the end, because that is never 0: 0 means that there is no occurrence.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    first: u32,
    last: u32,
}

/// Place that does not fit: the field may be anywhere.
const UNKNOWN: u32 = u32::MAX;

impl Slot {
    const EMPTY: Self = Self { first: 0, last: 0 };

    /// Returns the last occurrence with one of the wire types. The slot is not empty.
    #[inline(never)]
    fn last(self, input: &[u8], id: u32, wire_types: WireTypes) -> Option<Value<'_>> {
        match self.last_field(input) {
            Some(field) if wire_types.contain(field.value) => Some(field.value),
            _ => self.last_but(input, id, wire_types),
        }
    }

    /// Returns the last occurrence with one of the wire types, if the very last one has none of
    /// them.
    #[cold]
    #[inline(never)]
    fn last_but(self, input: &[u8], id: u32, wire_types: WireTypes) -> Option<Value<'_>> {
        Scan.last(self.span(input), id, wire_types)
    }

    /// Returns the last occurrence. The slot is not empty.
    #[inline]
    fn last_field(self, input: &[u8]) -> Option<Field<'_>> {
        // If the place is not known, any field may be there.
        if self.last == UNKNOWN { None } else { Fields::new(last_bytes(input, self.last)).next() }
    }

    /// Returns the bytes from the first to the end of the last occurrence. The slot is not empty.
    #[inline(never)]
    fn span(self, input: &[u8]) -> &[u8] {
        if self.last == UNKNOWN {
            return input;
        }
        let mut last = Fields::new(last_bytes(input, self.last));
        last.next();
        let end = input.len() - last.rest().len();
        let start = input.len() - last_bytes(input, self.first).len();
        input.get(start..end).unwrap_or_default()
    }
}

/// Returns the last `n` bytes, or all if there are fewer.
#[inline]
fn last_bytes(input: &[u8], n: u32) -> &[u8] {
    &input[input.len().saturating_sub(n as usize)..]
}

/// Makes the pass over the message. Returns how many bytes could not be read.
#[expect(clippy::cast_possible_truncation, reason = "a place is at most the length of the input")]
#[inline(never)]
fn fill(input: &[u8], table: &[u8], slots: &mut [Slot]) -> usize {
    if input.len() >= UNKNOWN as usize {
        return fill_unknown(input, slots);
    }
    let mut fields = Fields::new(input);
    loop {
        let place = fields.rest().len() as u32;
        let Some(field) = fields.next() else { return fields.rest().len() };
        let Some(slot) = table.get(field.id as usize).and_then(|slot| slots.get_mut(usize::from(*slot))) else {
            continue;
        };
        if slot.first == 0 {
            slot.first = place;
        }
        slot.last = place;
    }
}

#[cold]
fn fill_unknown(input: &[u8], slots: &mut [Slot]) -> usize {
    slots.fill(Slot { first: UNKNOWN, last: UNKNOWN });
    let mut fields = Fields::new(input);
    fields.by_ref().for_each(drop);
    fields.rest().len()
}

/// An array of slots.
#[doc(hidden)]
pub trait Slots: Copy + AsRef<[Slot]> + AsMut<[Slot]> {
    /// Returns empty slots.
    const EMPTY: Self;
}

impl<const N: usize> Slots for [Slot; N] {
    const EMPTY: Self = [Slot::EMPTY; N];
}

/// Returns the number of slots of an index of these fields, which are in ascending order.
#[doc(hidden)]
#[must_use]
pub const fn slots(fields: &[u32]) -> usize {
    let mut n = 0;
    while n < fields.len() && n < MAX_SLOTS && fields[n] <= MAX_INDEXED_ID {
        assert!(n == 0 || fields[n - 1] < fields[n], "field numbers are in ascending order");
        n += 1;
    }
    n
}

/// Returns the length of the table of these fields.
#[doc(hidden)]
#[must_use]
pub const fn table_len(fields: &[u32]) -> usize {
    match slots(fields) {
        0 => 0,
        n => fields[n - 1] as usize + 1,
    }
}

/// Returns the slot of each field by its number.
#[doc(hidden)]
#[expect(clippy::cast_possible_truncation, reason = "there are at most `MAX_SLOTS` slots")]
#[must_use]
pub const fn table<const N: usize>(fields: &[u32]) -> [u8; N] {
    let mut table = [NO_SLOT; N];
    let n = slots(fields);
    let mut slot = 0;
    while slot < n {
        table[fields[slot] as usize] = slot as u8;
        slot += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::kind::{Bytes, Int32, Kind as _};
    use crate::view::View;

    struct Sample;

    impl Schema for Sample {
        const FIELDS: &'static [u32] = &[2, 3, 999, 1000];
        const TABLE: &'static [u8] = &table::<{ table_len(Self::FIELDS) }>(Self::FIELDS);
        type Slots = [Slot; slots(Self::FIELDS)];
    }

    #[test]
    fn the_table_leads_to_the_slots() {
        let small = Sample::TABLE;
        assert_eq!(small.len(), 1000);
        assert_eq!((small[2], small[3], small[999]), (0, 1, 2));
        assert!(small.iter().filter(|slot| **slot != NO_SLOT).count() == 3);
        assert_eq!(size_of::<<Sample as Schema>::Slots>(), 3 * size_of::<Slot>());

        let many: Vec<u32> = (1..=300).collect();
        assert_eq!((slots(&many), table_len(&many)), (MAX_SLOTS, MAX_SLOTS + 1));
        let large = table::<256>(&many);
        assert_eq!((large[0], large[1], large[255]), (NO_SLOT, 0, 254));
        assert_eq!((slots(&[]), table_len(&[]), slots(&[1000]), table_len(&[1000])), (0, 0, 0, 0));
    }

    #[test]
    fn an_index_shows_the_fields_that_exist() {
        let index = Index::<Sample>::new(b"\x10\x01\x1a\x00\x20\x05");
        assert_eq!(std::format!("{index:?}"), "Index {2, 3}");
    }

    #[test]
    fn a_message_that_is_too_long_for_an_index_is_scanned() {
        let input = b"\x10\x01\x1a\x01x\x10\x02\x12\x02\x03\x04\x08";
        let mut slots = [Slot::EMPTY; 3];
        let unread = fill_unknown(input, &mut slots);
        let index = Index::<Sample> { slots, unread };
        assert_eq!(index.check(input), View::new(input).check());
        let int = |value| Int32::read(value);
        assert_eq!(index.last(input, 2, Int32::WIRE_TYPES).and_then(int), Some(2));
        assert_eq!(index.last(input, 3, Bytes::WIRE_TYPES).and_then(Bytes::read), Some(&b"x"[..]));
        assert_eq!(index.last(input, 999, Int32::WIRE_TYPES), None);
        assert_eq!(index.span(input, 2), input);
        assert_eq!(index.last_of(input, &[2, 3]), Scan.last_of(input, &[2, 3]));
    }
}
