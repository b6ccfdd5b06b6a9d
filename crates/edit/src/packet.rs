//! Changes of encoded messages, field by field.

use esatto_protozero::{Field, Fields, append_to};

/// Returns the fields of a message with the bytes of each.
pub(crate) fn raw_fields(message: &[u8]) -> impl Iterator<Item = (Field<'_>, &[u8])> {
    let mut fields = Fields::new(message);
    core::iter::from_fn(move || fields.next_with_bytes())
}

/// Returns a message without some of its fields.
pub(crate) fn without(message: &[u8], drop: impl Fn(u32) -> bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(message.len());
    for (field, bytes) in raw_fields(message) {
        if !drop(field.id) {
            kept.extend_from_slice(bytes);
        }
    }
    kept
}

/// Appends a field with a nested message.
pub(crate) fn append_message(message: &mut Vec<u8>, id: u32, content: &[u8]) {
    append_to(message, |mut message| message.bytes(id, content));
}

/// Returns the last field of a number, which counts if there are several.
pub(crate) fn last(message: &[u8], id: u32) -> Option<Field<'_>> {
    Fields::new(message).filter(|field| field.id == id).last()
}
