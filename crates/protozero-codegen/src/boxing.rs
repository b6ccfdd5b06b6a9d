//! The choice of nested values that are in a box.

use std::collections::HashSet;

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};

use crate::schema::Schema;

/// Values of nested messages are boxed from this size on.
///
/// The value of an empty message takes as much memory as that of a full one. Without boxes, two
/// bytes of a configuration could make a value of kilobytes, thousands of times in one request.
const BOXED_SIZE: usize = 128;

/// Returns true if the value of a `target` is boxed inside that of an `owner`, because it is large
/// or can contain an `owner`.
pub(crate) fn is_boxed(schema: &Schema<'_>, owner: &MessageDescriptor, target: &MessageDescriptor) -> bool {
    contains(target, owner) || size(schema, target) >= BOXED_SIZE
}

/// Returns true if `outer` is `inner`, or has it inside through singular fields.
fn contains(outer: &MessageDescriptor, inner: &MessageDescriptor) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![outer.clone()];
    while let Some(message) = todo.pop() {
        if message == *inner {
            return true;
        }
        if seen.insert(message.full_name().to_owned()) {
            todo.extend(message.fields().filter_map(|field| match field.kind() {
                Kind::Message(target) if field.cardinality() != Cardinality::Repeated => Some(target),
                _ => None,
            }));
        }
    }
    false
}

/// Returns the approximate size of a value in bytes, without its memory on the heap.
fn size(schema: &Schema<'_>, message: &MessageDescriptor) -> usize {
    const VEC: usize = 24;
    if let Some(known) = schema.sizes.borrow().get(message.full_name()) {
        return *known;
    }
    let field_size = |field: FieldDescriptor| match field.kind() {
        _ if field.cardinality() == Cardinality::Repeated => VEC,
        Kind::String | Kind::Bytes => VEC,
        Kind::Bool => 1,
        Kind::Message(target) if is_boxed(schema, message, &target) => 8,
        Kind::Message(target) => size(schema, &target),
        Kind::Double | Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => 16,
        Kind::Float | Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32 | Kind::Enum(_) => 8,
    };
    let size = VEC + message.fields().map(field_size).sum::<usize>();
    schema.sizes.borrow_mut().insert(message.full_name().to_owned(), size);
    size
}
