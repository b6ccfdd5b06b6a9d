//! The syntax tree of a `.fidl` file.

use crate::source::Span;

/// Name at a place.
#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// `fuchsia.io.Directory`: names with dots between them.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) parts: Vec<String>,
    pub(crate) span: Span,
}

/// `.fidl` file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) syntax: Syntax,
    /// It is a part of this compiler.
    pub(crate) is_built_in: bool,
    pub(crate) attributes: Attributes,
    pub(crate) library: Path,
    pub(crate) uses: Vec<Use>,
    pub(crate) declarations: Vec<Declaration>,
}

/// Which syntax a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Today,
    /// That from before 2021: `struct Point { int32 x; };`.
    Old,
}

/// `using fuchsia.io as io;`
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) library: Path,
    pub(crate) alias: Option<Ident>,
}

/// Declaration of a file: its attributes, its name and its content.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) attributes: Attributes,
    pub(crate) name: Ident,
    pub(crate) kind: DeclarationKind,
}

#[derive(Clone, Debug)]
pub(crate) enum DeclarationKind {
    /// `const NAME type = value;`
    Const { type_: TypeUse, value: Constant },
    /// `type Name = struct { … };`, or a new type of another type.
    Type(TypeUse),
    /// `alias Name = type;`
    Alias(TypeUse),
    /// `protocol Name { … };`
    Protocol(Protocol),
    /// `service Name { … };`
    Service(Vec<Member>),
    /// `resource_definition handle : uint32 { properties { … }; };`
    Resource(Vec<Member>),
}

/// Attributes before an element, the doc comment among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(pub(crate) Vec<Attribute>);

/// `@name`, `@name(value)` or `@name(argument=value, …)`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// Names are absent where the attribute has one argument without a name.
    pub(crate) arguments: Vec<(Option<String>, Constant)>,
}

/// Constant as it is written: parts with `|` between them.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub(crate) span: Span,
    pub(crate) parts: Vec<ConstantPart>,
}

#[derive(Clone, Debug)]
pub(crate) enum ConstantPart {
    Name(Path),
    Number(String),
    Text(String),
    Bool(bool),
}

/// Use of a type: `vector<string:10>:<5, optional>`.
#[derive(Clone, Debug)]
pub(crate) struct TypeUse {
    pub(crate) span: Span,
    pub(crate) head: TypeHead,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) constraints: Vec<Constant>,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeHead {
    Name(Path),
    Layout(Box<Layout>),
    /// `handle`, or `handle<vmo>` with the type of the object: only in old files.
    Handle(Option<Ident>),
}

/// Parameter of a type. A name may be a type or a constant.
#[derive(Clone, Debug)]
pub(crate) enum Parameter {
    Type(TypeUse),
    Constant(Constant),
}

/// `struct { … }` and the like.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) attributes: Attributes,
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) kind: LayoutKind,
    /// Underlying type of an enum or bits.
    pub(crate) subtype: Option<TypeUse>,
    pub(crate) members: Vec<Member>,
    pub(crate) span: Span,
    /// The layout is a resource if a member can hold handles: old files do not say.
    pub(crate) infers_resource: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutKind {
    Bits,
    Enum,
    Struct,
    Table,
    Union,
}

/// `strict`, `flexible`, `resource`, `open`, …, with its versions.
#[derive(Clone, Debug)]
pub(crate) struct Modifier {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// Arguments such as `added=2`.
    pub(crate) arguments: Vec<(Option<String>, Constant)>,
}

/// Member of a layout, a service or a resource.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) attributes: Attributes,
    /// Of a table or a union.
    pub(crate) ordinal: Option<(u64, Span)>,
    /// Absent if the ordinal is reserved.
    pub(crate) name: Option<Ident>,
    /// Absent in enums, in bits, and if the ordinal is reserved.
    pub(crate) type_: Option<TypeUse>,
    /// Value of a member of an enum or bits; default of a struct's.
    pub(crate) value: Option<Constant>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) composed: Vec<Composed>,
    pub(crate) methods: Vec<Method>,
}

/// `compose Protocol;`
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    pub(crate) attributes: Attributes,
    pub(crate) protocol: Path,
}

/// Method or event.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub(crate) attributes: Attributes,
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) name: Ident,
    /// Absent for an event.
    pub(crate) request: Option<Payload>,
    /// Absent for a one-way method.
    pub(crate) response: Option<Payload>,
    pub(crate) error: Option<TypeUse>,
}

/// `(type)`, or `()`.
#[derive(Clone, Debug)]
pub(crate) struct Payload(pub(crate) Option<TypeUse>);

impl Attributes {
    pub(crate) fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|attribute| attribute.name == name)
    }
}

impl Attribute {
    /// Returns the only argument if it is a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.arguments.as_slice() {
            [(_, value)] => value.as_text(),
            _ => None,
        }
    }
}

impl Constant {
    /// Returns the value of a string literal.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [ConstantPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the path if the constant is one name.
    pub(crate) fn as_path(&self) -> Option<&Path> {
        match self.parts.as_slice() {
            [ConstantPart::Name(path)] => Some(path),
            _ => None,
        }
    }

    /// Returns true if the constant is this word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.as_path().is_some_and(|path| path.parts == [word])
    }
}
