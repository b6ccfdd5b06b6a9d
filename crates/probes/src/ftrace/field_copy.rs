//! [`FieldCopy`]: how one field of an event becomes a field of a message.

use super::field_kind::{FieldKind, Width};
use super::format::FormatField;
use super::schema::FieldType;
use super::wire_buffer::Tag;

/// One field: read it from the event, write it into the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldCopy {
    pub(crate) kind: FieldKind,
    /// Where the field is in the event.
    pub(crate) offset: u16,
    pub(crate) size: u16,
    /// Number of the field in the message.
    pub(crate) number: u32,
    pub(crate) tag: Tag,
}

impl FieldCopy {
    pub(super) fn new(field: &FormatField<'_>, number: u32, is_function: bool) -> Option<Self> {
        let kind = match FieldKind::of(field)? {
            FieldKind::Unsigned(width @ (Width::W4 | Width::W8)) if is_function => FieldKind::Address(width),
            kind => kind,
        };
        let (offset, size) = (u16::try_from(field.offset).ok()?, u16::try_from(field.size).ok()?);
        Some(Self { kind, offset, size, number, tag: kind.tag(number) })
    }

    /// End of the field in the event.
    pub(super) fn end(&self) -> usize {
        usize::from(self.offset) + usize::from(self.size)
    }
}

impl FieldKind {
    /// Returns the tag of a field of this kind.
    pub(crate) const fn tag(self, number: u32) -> Tag {
        match self.generic_type() {
            FieldType::String | FieldType::Bytes => Tag::bytes(number),
            _ => Tag::varint(number),
        }
    }
}
