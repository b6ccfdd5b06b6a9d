//! Random schemas.
//!
//! Prost and our generator make the same Rust names from the names, so the glue does not need to
//! know their rules. The names are messages `M1`, enumerations `E1`, fields `f1`, oneofs `o1`,
//! packages `pa`, `pa.pb`.

use std::fmt;

use crate::rng::Rng;

/// The largest legal field number.
const MAX_NUMBER: usize = (1 << 29) - 1;

pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) package: Vec<&'static str>,
    pub(crate) proto3: bool,
    imports: Vec<String>,
    enums: Vec<Enum>,
    pub(crate) messages: Vec<Message>,
}

/// An enumeration and the numbers of its values; the first one is the default.
#[derive(Clone)]
pub(crate) struct Enum {
    pub(crate) path: TypePath,
    pub(crate) numbers: Vec<i32>,
}

pub(crate) struct Message {
    pub(crate) path: TypePath,
    pub(crate) fields: Vec<Field>,
    oneofs: usize,
    pub(crate) nested: Vec<Self>,
    enums: Vec<Enum>,
}

/// Where a type is: package, enclosing messages, name.
#[derive(Clone, PartialEq)]
pub(crate) struct TypePath {
    pub(crate) package: Vec<&'static str>,
    pub(crate) outer: Vec<String>,
    pub(crate) name: String,
}

pub(crate) struct Field {
    pub(crate) number: usize,
    pub(crate) label: Label,
    pub(crate) kind: Kind,
    /// As declared; `None` leaves it to the syntax.
    packed: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Label {
    /// With presence.
    Optional,
    /// proto3's: the default is as good as nothing.
    Implicit,
    Required,
    Repeated,
    /// A member of this oneof of the message.
    Oneof(usize),
    /// A map from this scalar.
    Map(&'static str),
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// By its name in the schema language.
    Scalar(&'static str),
    Enum(Enum),
    Message(TypePath),
}

impl Field {
    pub(crate) fn name(&self) -> String {
        format!("f{}", self.number)
    }
}

/// As many files as told, each importing some of those before it.
pub(crate) fn files(rng: &mut Rng, count: usize) -> Vec<File> {
    let mut types = Types { count: 0, enums: Vec::new(), messages: Vec::new() };
    let mut files: Vec<File> = Vec::new();
    for index in 0..count {
        let package = rng.pick(&[vec!["pa"], vec!["pa", "pb"], vec!["pc"], vec!["pa", "pb", "pd"]]).clone();
        // A file may refer to its imports and its own declarations.
        let own = types.count;
        let proto3 = index % 2 == 1;
        let imports: Vec<String> = files.iter().filter(|_| !rng.one_in(3)).map(|file| file.name.clone()).collect();
        let mut visible = Types { count: own, enums: Vec::new(), messages: Vec::new() };
        for file in files.iter().filter(|file| imports.contains(&file.name)) {
            // An enumeration of proto2 may lack a 0 and cannot be used in proto3.
            if !proto3 || file.proto3 {
                visible.enums.extend(file.enums.iter().cloned());
            }
            visible
                .messages
                .extend(file.messages.iter().flat_map(all).filter(|m| !has_required(m)).map(|m| m.path.clone()));
        }
        let enums: Vec<Enum> = (0..1 + rng.below(2)).map(|_| visible.an_enum(rng, &package, &[], proto3)).collect();
        let messages: Vec<Message> =
            (0..3 + rng.below(3)).map(|_| visible.message(rng, &package, &[], proto3, 0)).collect();
        types.count = visible.count;
        files.push(File { name: format!("file{index}.proto"), package, proto3, imports, enums, messages });
    }
    files
}

/// A message and those inside of it.
pub(crate) fn all(message: &Message) -> Vec<&Message> {
    let mut found = vec![message];
    found.extend(message.nested.iter().flat_map(all));
    found
}

/// Messages that are not whole without a value are not referred to by others, or a small value
/// could need endless ones.
fn has_required(message: &Message) -> bool {
    message.fields.iter().any(|field| field.label == Label::Required)
}

/// The types that a file may refer to.
struct Types {
    count: usize,
    enums: Vec<Enum>,
    messages: Vec<TypePath>,
}

const SCALARS: &[&str] = &[
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
];
const KEYS: &[&str] = &[
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
    "string",
];

impl Types {
    fn path(&mut self, letter: char, package: &[&'static str], outer: &[String]) -> TypePath {
        self.count += 1;
        TypePath { package: package.to_vec(), outer: outer.to_vec(), name: format!("{letter}{}", self.count) }
    }

    fn an_enum(&mut self, rng: &mut Rng, package: &[&'static str], outer: &[String], proto3: bool) -> Enum {
        let path = self.path('E', package, outer);
        let first = if proto3 { 0 } else { *rng.pick(&[0, 1, -1, i32::MIN]) };
        let mut numbers = vec![first];
        for _ in 0..rng.below(6) {
            // May be the same again, under another name.
            let choices = [first, -1, 1, 2, 127, 128, i32::MAX, i32::MIN, rng.bits() as i32];
            numbers.push(*rng.pick(&choices));
        }
        let found = Enum { path, numbers };
        self.enums.push(found.clone());
        found
    }

    fn message(
        &mut self,
        rng: &mut Rng,
        package: &[&'static str],
        outer: &[String],
        proto3: bool,
        depth: usize,
    ) -> Message {
        let path = self.path('M', package, outer);
        let inside = [outer, std::slice::from_ref(&path.name)].concat();
        let enums = (0..rng.below(2)).map(|_| self.an_enum(rng, package, &inside, proto3)).collect();
        let nested = if depth < 2 { rng.below(3) } else { 0 };
        let nested = (0..nested).map(|_| self.message(rng, package, &inside, proto3, depth + 1)).collect();
        let count = if rng.one_in(12) { 0 } else { 1 + rng.below(24) };
        let oneofs = rng.below(3);
        let needs_more = count > 0 && !proto3 && rng.one_in(4);
        // Itself included: messages may contain themselves, but not one that is required.
        if !needs_more {
            self.messages.push(path.clone());
        }
        let mut fields: Vec<Field> = Vec::new();
        while fields.len() < count {
            let number = number(rng);
            if fields.iter().all(|field| field.number != number) {
                fields.push(self.field(rng, number, proto3, oneofs, needs_more));
            }
        }
        // The schema language has no empty oneofs.
        for oneof in 0..oneofs {
            while !fields.iter().any(|field| field.label == Label::Oneof(oneof)) {
                let number = number(rng);
                if fields.iter().all(|field| field.number != number) {
                    fields.push(Field { number, label: Label::Oneof(oneof), kind: self.kind(rng), packed: None });
                }
            }
        }
        Message { path, fields, oneofs, nested, enums }
    }

    fn field(&mut self, rng: &mut Rng, number: usize, proto3: bool, oneofs: usize, needs_more: bool) -> Field {
        let kind = self.kind(rng);
        let is_message = matches!(kind, Kind::Message(_));
        let label = match rng.below(10) {
            0..=2 => Label::Repeated,
            3 if may_be_in_a_map(&kind) => Label::Map(rng.pick::<&str>(KEYS)),
            4 | 5 if oneofs > 0 => Label::Oneof(rng.below(oneofs)),
            6 if needs_more && !is_message => Label::Required,
            7.. if proto3 && !is_message => Label::Implicit,
            _ => Label::Optional,
        };
        let packable = !matches!(kind, Kind::Message(_) | Kind::Scalar("string" | "bytes"));
        let packed = (label == Label::Repeated && packable && rng.one_in(2)).then(|| rng.one_in(2));
        Field { number, label, kind, packed }
    }

    fn kind(&self, rng: &mut Rng) -> Kind {
        match rng.below(5) {
            0 if !self.messages.is_empty() => Kind::Message(rng.pick(&self.messages).clone()),
            1 if !self.enums.is_empty() => Kind::Enum(rng.pick(&self.enums).clone()),
            _ => Kind::Scalar(rng.pick::<&str>(SCALARS)),
        }
    }
}

/// Values of a map begin at 0.
fn may_be_in_a_map(kind: &Kind) -> bool {
    !matches!(kind, Kind::Enum(found) if found.numbers[0] != 0)
}

/// A field number; those that the schema language reserves are left out.
fn number(rng: &mut Rng) -> usize {
    loop {
        let number = match rng.below(8) {
            0 => *rng.pick(&[1, 15, 16, 127, 128, 999, 1000, 2047, 2048, 65535, 65536, MAX_NUMBER]),
            1 => 1 + rng.below(MAX_NUMBER),
            _ => 1 + rng.below(60),
        };
        if !(19_000..20_000).contains(&number) {
            return number;
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "syntax = \"proto{}\";\n\npackage {};\n", if self.proto3 { 3 } else { 2 }, self.package.join("."))?;
        self.imports.iter().try_for_each(|import| writeln!(f, "import {import:?};"))?;
        self.enums.iter().try_for_each(|found| write!(f, "{found}"))?;
        self.messages.iter().try_for_each(|message| write!(f, "{message}"))
    }
}

impl fmt::Display for Enum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.path.name;
        writeln!(f, "\nenum {name} {{")?;
        let mut sorted = self.numbers.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < self.numbers.len() {
            writeln!(f, "option allow_alias = true;")?;
        }
        for (index, number) in self.numbers.iter().enumerate() {
            writeln!(f, "{name}_V{index} = {number};")?;
        }
        writeln!(f, "}}")
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmessage {} {{", self.path.name)?;
        self.enums.iter().try_for_each(|found| write!(f, "{found}"))?;
        self.nested.iter().try_for_each(|message| write!(f, "{message}"))?;
        for field in self.fields.iter().filter(|field| !matches!(field.label, Label::Oneof(_))) {
            writeln!(f, "{field}")?;
        }
        for oneof in 0..self.oneofs {
            writeln!(f, "oneof o{oneof} {{")?;
            for field in self.fields.iter().filter(|field| field.label == Label::Oneof(oneof)) {
                writeln!(f, "{field}")?;
            }
            writeln!(f, "}}")?;
        }
        writeln!(f, "}}")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Scalar(name) => (*name).to_owned(),
            Kind::Enum(found) => found.path.proto(),
            Kind::Message(path) => path.proto(),
        };
        match self.label {
            Label::Optional => write!(f, "optional {kind}")?,
            Label::Required => write!(f, "required {kind}")?,
            Label::Repeated => write!(f, "repeated {kind}")?,
            Label::Implicit | Label::Oneof(_) => write!(f, "{kind}")?,
            Label::Map(key) => write!(f, "map<{key}, {kind}>")?,
        }
        write!(f, " {} = {}", self.name(), self.number)?;
        match self.packed {
            Some(packed) => write!(f, " [packed = {packed}];"),
            None => write!(f, ";"),
        }
    }
}

impl File {
    /// True if a field is encoded packed.
    pub(crate) fn is_packed(&self, field: &Field) -> bool {
        let packable = !matches!(field.kind, Kind::Message(_) | Kind::Scalar("string" | "bytes"));
        field.label == Label::Repeated && packable && field.packed.unwrap_or(self.proto3)
    }
}

impl TypePath {
    fn proto(&self) -> String {
        let package = self.package.iter().map(|&part| part.to_owned());
        let parts: Vec<String> = package.chain(self.outer.iter().cloned()).chain([self.name.clone()]).collect();
        format!(".{}", parts.join("."))
    }

    /// `pa::pb::m1::M2`
    pub(crate) fn rust(&self) -> String {
        let package = self.package.iter().map(|&part| part.to_owned());
        let outer = self.outer.iter().map(|name| name.to_lowercase());
        package.chain(outer).chain([self.name.clone()]).collect::<Vec<_>>().join("::")
    }

    /// The module of what belongs to a message: `pa::pb::m1`.
    pub(crate) fn module(&self) -> String {
        let (outer, name) = (self.rust(), self.name.to_lowercase());
        outer.strip_suffix(&self.name).unwrap_or(&outer).to_owned() + &name
    }
}
