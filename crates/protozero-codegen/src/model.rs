//! What the printers need to know of a field, whether declared in a message or as an extension.

use prost_reflect::{Cardinality, ExtensionDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) repeated: bool,
    pub(crate) packed: bool,
    /// The message that declares it; `None` for an extension.
    pub(crate) owner: Option<MessageDescriptor>,
    /// Documentation: the declaration, then the comment if there is one.
    pub(crate) doc: String,
}

impl Field {
    pub(crate) fn of(field: &FieldDescriptor, comment: &str) -> Self {
        let options = field.field_descriptor_proto().options.as_ref();
        let repeated = field.cardinality() == Cardinality::Repeated;
        let label = match field.cardinality() {
            Cardinality::Repeated if field.is_map() => "map ",
            Cardinality::Repeated => "repeated ",
            Cardinality::Required => "required ",
            Cardinality::Optional if field.containing_oneof().is_some() => "",
            Cardinality::Optional => "optional ",
        };
        let mut doc = declaration(label, &field.kind(), field.name(), field.number());
        if let Some(oneof) = field.containing_oneof().filter(|oneof| !oneof.is_synthetic()) {
            doc = format!("{doc}, one of `{}`", oneof.name());
        }
        Self {
            name: field.name().to_owned(),
            number: field.number(),
            kind: field.kind(),
            repeated,
            packed: field.is_packed(),
            owner: Some(field.parent_message().clone()),
            doc: with_remarks(doc, options.is_some_and(|options| options.deprecated()), comment),
        }
    }

    pub(crate) fn of_extension(field: &ExtensionDescriptor, comment: &str) -> Self {
        let repeated = field.cardinality() == Cardinality::Repeated;
        let label = if repeated { "repeated " } else { "optional " };
        let doc = declaration(label, &field.kind(), field.name(), field.number());
        Self {
            name: field.name().to_owned(),
            number: field.number(),
            kind: field.kind(),
            repeated,
            packed: field.is_packed(),
            owner: None,
            doc: with_remarks(doc, false, comment),
        }
    }

    /// The file that declares the message or enumeration this field holds.
    pub(crate) fn target_file(&self) -> Option<FileDescriptor> {
        match &self.kind {
            Kind::Message(message) => Some(message.parent_file()),
            Kind::Enum(target) => Some(target.parent_file()),
            _ => None,
        }
    }

    /// The runtime's name of a scalar kind; `None` for strings, bytes and messages.
    pub(crate) fn scalar_kind(&self) -> Option<&'static str> {
        Some(match self.kind {
            Kind::Double => "Double",
            Kind::Float => "Float",
            Kind::Int32 => "Int32",
            Kind::Int64 => "Int64",
            Kind::Uint32 => "Uint32",
            Kind::Uint64 => "Uint64",
            Kind::Sint32 => "Sint32",
            Kind::Sint64 => "Sint64",
            Kind::Fixed32 => "Fixed32",
            Kind::Fixed64 => "Fixed64",
            Kind::Sfixed32 => "Sfixed32",
            Kind::Sfixed64 => "Sfixed64",
            Kind::Bool => "Bool",
            Kind::Enum(_) => "Enum<_>",
            Kind::String | Kind::Bytes | Kind::Message(_) => return None,
        })
    }

    /// The Rust type of a number or bool; `None` for everything else.
    pub(crate) fn primitive(&self) -> Option<&'static str> {
        Some(match self.kind {
            Kind::Double => "f64",
            Kind::Float => "f32",
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "i32",
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "i64",
            Kind::Uint32 | Kind::Fixed32 => "u32",
            Kind::Uint64 | Kind::Fixed64 => "u64",
            Kind::Bool => "bool",
            Kind::Enum(_) | Kind::String | Kind::Bytes | Kind::Message(_) => return None,
        })
    }
}

/// ``  `optional uint32 name = 1`  ``
fn declaration(label: &str, kind: &Kind, name: &str, number: u32) -> String {
    let type_name = match kind {
        Kind::Message(message) => message.name().to_owned(),
        Kind::Enum(target) => target.name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    };
    format!("`{label}{type_name} {name} = {number}`")
}

fn with_remarks(mut doc: String, deprecated: bool, comment: &str) -> String {
    if deprecated {
        doc.push_str(", deprecated");
    }
    if !comment.is_empty() {
        doc = format!("{doc}\n\n{comment}");
    }
    doc
}
