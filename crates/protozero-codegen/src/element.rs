//! Types of single values in value types.

use prost_reflect::{Kind, MessageDescriptor};

use crate::boxing::is_boxed;
use crate::context::Context;
use crate::field::Field;

/// One value of a field, or a key or a value of a map.
pub(crate) struct Element {
    pub(crate) type_name: String,
    /// The type of the runtime that decodes and encodes it.
    pub(crate) marker: String,
    /// True if decoding can recurse.
    pub(crate) nests: bool,
}

impl Element {
    pub(crate) fn of(cx: Context<'_>, owner: &MessageDescriptor, field: &Field) -> Self {
        let (type_name, marker) = match &field.kind {
            Kind::Message(target) => {
                let path = cx.message_path(target, field.owner.as_ref());
                let boxed = !field.repeated && is_boxed(cx.schema, owner, target);
                let type_name = if boxed { format!("pz::rt::Box<{path}>") } else { path };
                let marker = format!("pz::element::Nested<{type_name}>");
                (type_name, marker)
            }
            Kind::String => ("pz::ProtoString".to_owned(), "pz::element::Text".to_owned()),
            Kind::Bytes => ("pz::rt::Vec<u8>".to_owned(), "pz::element::Bytes".to_owned()),
            Kind::Enum(target) => {
                let path = cx.enum_path(target, field.owner.as_ref());
                let marker = format!("pz::element::Scalar<pz::kind::Enum<{path}>>");
                (path, marker)
            }
            _ => {
                let kind = field.scalar_kind().unwrap_or_default();
                let type_name = field.primitive().unwrap_or_default().to_owned();
                (type_name, format!("pz::element::Scalar<pz::kind::{kind}>"))
            }
        };
        Self { type_name, marker, nests: matches!(field.kind, Kind::Message(_)) }
    }
}
