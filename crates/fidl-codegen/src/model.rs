//! The model of FIDL libraries: names are looked up, constants have values, aliases are gone.
//!
//! It comes from `.fidl` files ([`crate::resolve`]) or from the JSON of Fuchsia's compiler
//! ([`crate::ir`]), and the generator reads it.

use std::fmt;

/// Full name of a declaration: `fuchsia.io/Directory`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) library: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) doc: Option<String>,
    /// It is not in the user's files.
    pub(crate) is_built_in: bool,
    /// In the order of their names.
    pub(crate) declarations: Vec<Declaration>,
}

#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) name: Name,
    pub(crate) notes: Notes,
    pub(crate) kind: DeclarationKind,
}

/// Facts for people: the doc comment, and advice what to use instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) doc: Option<String>,
    pub(crate) deprecated: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum DeclarationKind {
    Const { type_: Type, value: Value },
    Bits(Numbers),
    Enum(Numbers),
    Struct(Struct),
    Table(Members),
    Union(Members),
    NewType(Type),
    Protocol(Protocol),
    Service(Vec<ServiceMember>),
}

/// Enum or bits.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) type_: Primitive,
    pub(crate) is_strict: bool,
    pub(crate) members: Vec<NumberMember>,
}

#[derive(Clone, Debug)]
pub(crate) struct NumberMember {
    pub(crate) name: String,
    pub(crate) notes: Notes,
    pub(crate) value: i128,
    /// Marked with `@unknown`: a placeholder, treated as unknown.
    pub(crate) is_unknown: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) is_resource: bool,
    pub(crate) members: Vec<StructMember>,
}

#[derive(Clone, Debug)]
pub(crate) struct StructMember {
    pub(crate) name: String,
    pub(crate) notes: Notes,
    pub(crate) type_: Type,
    pub(crate) default: Option<Value>,
}

/// Table or union.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) is_resource: bool,
    /// False for tables.
    pub(crate) is_strict: bool,
    /// In the order of their ordinals, without the reserved ones.
    pub(crate) members: Vec<OrdinalMember>,
}

#[derive(Clone, Debug)]
pub(crate) struct OrdinalMember {
    pub(crate) ordinal: u64,
    pub(crate) name: String,
    pub(crate) notes: Notes,
    pub(crate) type_: Type,
}

#[derive(Clone, Debug)]
pub(crate) struct ServiceMember {
    pub(crate) name: String,
    pub(crate) notes: Notes,
    pub(crate) protocol: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) openness: Openness,
    /// Name by which clients find a server of it (`@discoverable`).
    pub(crate) discoverable: Option<String>,
    /// Its own methods and those of composed protocols, in the order of their names.
    pub(crate) methods: Vec<Method>,
}

/// From strict to lenient: a protocol composes only those that are not after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Openness {
    Closed,
    Ajar,
    Open,
}

#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub(crate) name: String,
    pub(crate) notes: Notes,
    pub(crate) ordinal: u64,
    pub(crate) is_strict: bool,
    pub(crate) kind: MethodKind,
    /// Category of traced calls: the method's `@trace`, else that of its protocol.
    pub(crate) trace: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum MethodKind {
    OneWay { request: Payload },
    TwoWay { request: Payload, response: Response },
    Event { payload: Payload },
}

/// Body of a message: a struct, table or union; absent for `()`.
pub(crate) type Payload = Option<Name>;

#[derive(Clone, Debug)]
pub(crate) enum Response {
    /// The body is the payload.
    Plain(Payload),
    /// The body is a union: 1 the payload (an empty struct for `()`), 2 the error, 3 the error of
    /// the framework.
    Result { success: Payload, error: Option<Type> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Primitive {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float32,
    Float64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Primitive(Primitive),
    String {
        max: Option<u64>,
        is_optional: bool,
    },
    Vector {
        element: Box<Self>,
        max: Option<u64>,
        is_optional: bool,
    },
    Array {
        element: Box<Self>,
        count: u64,
    },
    /// Name of the object's type in lower case, such as `vmo`.
    Handle {
        object: Option<String>,
        is_optional: bool,
    },
    Endpoint {
        side: Side,
        protocol: Name,
        is_optional: bool,
    },
    /// Enum, bits, struct, table, union or new type.
    Declared(Name),
    /// Struct out of line.
    Box(Name),
    /// Optional union.
    OptionalUnion(Name),
}

impl Type {
    /// Returns true if a value may be absent.
    pub(crate) fn is_optional(&self) -> bool {
        match self {
            Self::String { is_optional, .. }
            | Self::Vector { is_optional, .. }
            | Self::Handle { is_optional, .. }
            | Self::Endpoint { is_optional, .. } => *is_optional,
            Self::Box(_) | Self::OptionalUnion(_) => true,
            Self::Primitive(_) | Self::Array { .. } | Self::Declared(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i128),
    /// As it is written.
    Float(String),
    Text(String),
    /// Value of an enum or bits.
    Number {
        type_: Name,
        value: i128,
    },
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.library, self.name)
    }
}

impl Name {
    pub(crate) fn new(library: &str, name: &str) -> Self {
        Self { library: library.to_owned(), name: name.to_owned() }
    }

    /// Reads `library/Name`.
    #[cfg(test)]
    pub(crate) fn parse(full: &str) -> Option<Self> {
        let (library, name) = full.split_once('/')?;
        Some(Self::new(library, name))
    }
}

impl Primitive {
    pub(crate) const ALL: [(&'static str, Self); 11] = [
        ("bool", Self::Bool),
        ("int8", Self::Int8),
        ("int16", Self::Int16),
        ("int32", Self::Int32),
        ("int64", Self::Int64),
        ("uint8", Self::Uint8),
        ("uint16", Self::Uint16),
        ("uint32", Self::Uint32),
        ("uint64", Self::Uint64),
        ("float32", Self::Float32),
        ("float64", Self::Float64),
    ];

    pub(crate) fn from_fidl(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(fidl, _)| *fidl == name).map(|(_, primitive)| *primitive)
    }

    pub(crate) fn fidl(self) -> &'static str {
        Self::ALL.iter().find(|(_, primitive)| *primitive == self).map_or("", |(fidl, _)| fidl)
    }

    /// Returns the size in bytes, which is also the alignment.
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// Returns the smallest and the largest value; `None` if it is no integer.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Bool | Self::Float32 | Self::Float64 => return None,
            Self::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
            Self::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
            Self::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
            Self::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Self::Uint8 => (0, i128::from(u8::MAX)),
            Self::Uint16 => (0, i128::from(u16::MAX)),
            Self::Uint32 => (0, i128::from(u32::MAX)),
            Self::Uint64 => (0, i128::from(u64::MAX)),
        })
    }
}

impl Method {
    /// Returns true if the caller waits for a response.
    pub(crate) fn is_two_way(&self) -> bool {
        matches!(self.kind, MethodKind::TwoWay { .. })
    }
}
