//! The JSON as it is written, as far as it is read. Older and newer compilers leave fields out.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Library {
    pub(super) name: String,
    #[serde(default)]
    pub(super) maybe_attributes: Vec<Attribute>,
    #[serde(default)]
    pub(super) bits_declarations: Vec<Numbers>,
    #[serde(default)]
    pub(super) const_declarations: Vec<Const>,
    #[serde(default)]
    pub(super) enum_declarations: Vec<Numbers>,
    #[serde(default)]
    pub(super) protocol_declarations: Vec<Protocol>,
    #[serde(default)]
    pub(super) service_declarations: Vec<Service>,
    #[serde(default)]
    pub(super) struct_declarations: Vec<Layout>,
    #[serde(default)]
    pub(super) table_declarations: Vec<Layout>,
    #[serde(default)]
    pub(super) union_declarations: Vec<Layout>,
    #[serde(default)]
    pub(super) overlay_declarations: Vec<Layout>,
    #[serde(default)]
    pub(super) new_type_declarations: Vec<NewType>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) value: Constant,
}

#[derive(Debug, Deserialize)]
pub(super) struct Constant {
    /// The value as text, whatever its type is.
    pub(super) value: String,
}

/// Fields of all declarations, members and methods.
#[derive(Debug, Deserialize)]
pub(super) struct Notes {
    #[serde(default)]
    pub(super) maybe_attributes: Vec<Attribute>,
    #[serde(default)]
    pub(super) deprecated: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Const {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(rename = "type")]
    pub(super) type_: Type,
    pub(super) value: Constant,
}

/// Enum or bits.
#[derive(Debug, Deserialize)]
pub(super) struct Numbers {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(rename = "type")]
    pub(super) type_: NumberType,
    pub(super) strict: bool,
    pub(super) members: Vec<NumberMember>,
}

/// Name of a primitive type for an enum, a type for bits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum NumberType {
    Name(String),
    Type { subtype: String },
}

#[derive(Debug, Deserialize)]
pub(super) struct NumberMember {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    pub(super) value: Constant,
}

/// Struct, table or union.
#[derive(Debug, Deserialize)]
pub(super) struct Layout {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(default)]
    pub(super) strict: bool,
    #[serde(default)]
    pub(super) resource: bool,
    /// The compiler made it for a method without values in its result.
    #[serde(default)]
    pub(super) is_empty_success_struct: bool,
    pub(super) members: Vec<Member>,
    pub(super) type_shape_v2: Option<Shape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Member {
    /// Of a table or union.
    pub(super) ordinal: Option<u64>,
    /// Absent if the ordinal is reserved.
    pub(super) name: Option<String>,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(rename = "type")]
    pub(super) type_: Option<Type>,
    pub(super) maybe_default_value: Option<Constant>,
    pub(super) field_shape_v2: Option<FieldShape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Shape {
    pub(super) inline_size: u64,
    pub(super) alignment: u64,
    pub(super) depth: Option<u64>,
    pub(super) max_handles: Option<u64>,
    pub(super) max_out_of_line: Option<u64>,
    pub(super) has_padding: Option<bool>,
    pub(super) has_flexible_envelope: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FieldShape {
    pub(super) offset: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct NewType {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(rename = "type")]
    pub(super) type_: Type,
}

#[derive(Debug, Deserialize)]
pub(super) struct Service {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    pub(super) members: Vec<ServiceMember>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ServiceMember {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    #[serde(rename = "type")]
    pub(super) type_: Type,
}

#[derive(Debug, Deserialize)]
pub(super) struct Protocol {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    /// Absent before there were open protocols.
    pub(super) openness: Option<String>,
    #[serde(default)]
    pub(super) composed_protocols: Vec<Composed>,
    pub(super) methods: Vec<Method>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Composed {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Method {
    pub(super) ordinal: u64,
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) notes: Notes,
    pub(super) strict: Option<bool>,
    pub(super) has_request: bool,
    pub(super) maybe_request_payload: Option<Type>,
    pub(super) has_response: bool,
    pub(super) maybe_response_payload: Option<Type>,
    #[serde(default)]
    pub(super) is_composed: bool,
    #[serde(default)]
    pub(super) has_error: bool,
    pub(super) maybe_response_result_type: Option<Type>,
    pub(super) maybe_response_success_type: Option<Type>,
    pub(super) maybe_response_err_type: Option<Type>,
}

/// Type. Which fields are there depends on the kind.
#[derive(Debug, Deserialize)]
pub(super) struct Type {
    kind: Option<String>,
    /// The kind, as newer compilers write it.
    kind_v2: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) identifier: Option<String>,
    #[serde(default)]
    pub(super) nullable: bool,
    pub(super) element_type: Option<Box<Self>>,
    pub(super) element_count: Option<u64>,
    pub(super) maybe_element_count: Option<u64>,
    pub(super) role: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) protocol_transport: Option<String>,
    pub(super) type_shape_v2: Option<Shape>,
}

impl Type {
    pub(super) fn kind(&self) -> &str {
        self.kind_v2.as_deref().or(self.kind.as_deref()).unwrap_or("")
    }
}

impl Notes {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.maybe_attributes.iter().find(|attribute| attribute.is(name))
    }
}

impl Attribute {
    /// Returns true if it is called so. Older compilers write `NoDoc` instead of `no_doc`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name || self.name.eq_ignore_ascii_case(&name.replace('_', ""))
    }

    /// Returns the value of the argument; of the only one if it has no such name.
    pub(super) fn argument(&self, name: &str) -> Option<&str> {
        let named = self.arguments.iter().find(|argument| argument.name == name);
        let only = self.arguments.first().filter(|_| self.arguments.len() == 1 && name == "value");
        named.or(only).map(|argument| argument.value.value.as_str())
    }
}
