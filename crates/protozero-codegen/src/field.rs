//! A field as the printers need it: of a message, or an extension.

use prost_reflect::{
    Cardinality, ExtensionDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, Syntax,
};
use prost_types::FieldDescriptorProto;

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
    /// The message of the entries, if this is a map.
    pub(crate) entry: Option<MessageDescriptor>,
    /// The full name of the `oneof` that it is a member of.
    pub(crate) oneof: Option<String>,
    /// `[lazy = true]`
    pub(crate) lazy: bool,
    /// `[deprecated = true]`
    pub(crate) deprecated: bool,
    /// Documentation: the declaration, and then the comment if there is one.
    pub(crate) doc: String,
}

impl Field {
    pub(crate) fn of(field: &FieldDescriptor, comment: &str) -> Self {
        let proto = field.field_descriptor_proto();
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let label = match field.cardinality() {
            Cardinality::Repeated if field.is_map() => "",
            Cardinality::Repeated => "repeated ",
            Cardinality::Required => "required ",
            Cardinality::Optional if oneof.is_some() => "",
            // As the schema says it. In proto3 a message needs no label, although it can be absent.
            Cardinality::Optional if field.parent_file().syntax() == Syntax::Proto2 || proto.proto3_optional() => {
                "optional "
            }
            Cardinality::Optional => "",
        };
        let mut doc = declaration(label, &field.kind(), proto);
        if let Some(oneof) = &oneof {
            doc = format!("{doc}, one of `{}`", oneof.name());
        }
        Self {
            name: field.name().to_owned(),
            number: field.number(),
            kind: field.kind(),
            repeated: field.cardinality() == Cardinality::Repeated,
            packed: field.is_packed(),
            owner: Some(field.parent_message().clone()),
            entry: field.kind().as_message().filter(|entry| entry.is_map_entry()).cloned(),
            oneof: oneof.map(|oneof| oneof.full_name().to_owned()),
            lazy: is_lazy(proto),
            deprecated: is_deprecated(proto),
            doc: with_remarks(doc, is_deprecated(proto), comment),
        }
    }

    pub(crate) fn of_extension(field: &ExtensionDescriptor, comment: &str) -> Self {
        let proto = field.field_descriptor_proto();
        let repeated = field.cardinality() == Cardinality::Repeated;
        let label = if repeated { "repeated " } else { "optional " };
        Self {
            name: field.name().to_owned(),
            number: field.number(),
            kind: field.kind(),
            repeated,
            packed: field.is_packed(),
            owner: None,
            entry: None,
            oneof: None,
            lazy: is_lazy(proto),
            deprecated: is_deprecated(proto),
            doc: with_remarks(declaration(label, &field.kind(), proto), is_deprecated(proto), comment),
        }
    }

    /// Returns the file that declares the message or enumeration of this field. For a map it is
    /// that of its values.
    pub(crate) fn target_file(&self) -> Option<FileDescriptor> {
        let values = self.entry.as_ref().map(|entry| entry.map_entry_value_field().kind());
        match values.as_ref().unwrap_or(&self.kind) {
            Kind::Message(message) => Some(message.parent_file()),
            Kind::Enum(target) => Some(target.parent_file()),
            _ => None,
        }
    }

    /// Returns the runtime's name of a scalar kind; `None` for strings, bytes and messages.
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

    /// Returns the Rust type of a number or bool; `None` for all other kinds.
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

fn is_lazy(field: &FieldDescriptorProto) -> bool {
    field.options.as_ref().is_some_and(|options| options.lazy())
}

fn is_deprecated(field: &FieldDescriptorProto) -> bool {
    field.options.as_ref().is_some_and(|options| options.deprecated())
}

/// ``  `optional uint32 name = 1`  ``
fn declaration(label: &str, kind: &Kind, field: &FieldDescriptorProto) -> String {
    let default = match field.default_value.as_deref() {
        Some(text) if matches!(kind, Kind::String | Kind::Bytes) => format!(" [default = {text:?}]").replace('`', "'"),
        Some(value) => format!(" [default = {value}]"),
        None => String::new(),
    };
    format!("`{label}{} {} = {}{default}`", type_name(kind), field.name(), field.number())
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Message(entry) if entry.is_map_entry() => {
            let (key, value) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field().kind());
            format!("map<{}, {}>", type_name(&key), type_name(&value))
        }
        Kind::Message(message) => message.name().to_owned(),
        Kind::Enum(target) => target.name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
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
