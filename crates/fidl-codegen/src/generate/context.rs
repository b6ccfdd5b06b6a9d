//! [`Context`]: what the code of a declaration needs to know of others.

use std::collections::{BTreeMap, BTreeSet};

use super::{clash, names};
use crate::error::Result;
use crate::layout::{Layouts, Shape};
use crate::model::{Declaration, DeclarationKind, Library, Name, Side, Type};

pub(super) struct Context<'a> {
    layouts: Layouts<'a>,
    /// Types whose values contain themselves without indirection in the wire format's sense: a
    /// union that is a member of its own struct, for example. Rust needs a `Box` there.
    recursive: BTreeSet<&'a Name>,
}

impl<'a> Context<'a> {
    pub(super) fn new(libraries: &'a [Library]) -> Result<Self> {
        for library in libraries {
            let mut taken: BTreeMap<String, &Name> = BTreeMap::new();
            for declaration in &library.declarations {
                let rust = match declaration.kind {
                    DeclarationKind::Const { .. } => names::constant(&declaration.name.name),
                    _ => names::type_name(&declaration.name.name),
                };
                if let Some(other) = taken.insert(rust.clone(), &declaration.name) {
                    return Err(clash(&other.to_string(), &declaration.name.to_string(), &rust));
                }
            }
            for declaration in &library.declarations {
                check_members(declaration)?;
            }
        }
        let layouts = Layouts::new(libraries);
        let recursive = recursive(libraries, &layouts);
        Ok(Self { layouts, recursive })
    }

    pub(super) fn get(&self, name: &Name) -> Option<&'a Declaration> {
        self.layouts.get(name)
    }

    /// Returns size and alignment of a type. The compiler has checked that it has some.
    pub(super) fn shape(&self, type_: &Type) -> Shape {
        self.layouts.shape(type_).unwrap_or(Shape { size: 1, align: 1 })
    }

    /// Returns the offset of each member of a struct, and the struct's shape.
    pub(super) fn members(&self, members: &[Type]) -> (Vec<u64>, Shape) {
        self.layouts.members(members).unwrap_or_else(|_| (vec![0; members.len()], Shape { size: 1, align: 1 }))
    }

    /// Returns true if values of the type may hold handles.
    pub(super) fn is_resource(&self, type_: &Type) -> bool {
        self.layouts.is_resource(type_)
    }

    /// Returns the path of a declared type, as items of `from` write it.
    pub(super) fn path(&self, from: &Name, to: &Name) -> String {
        let name = names::type_name(&to.name);
        if from.library == to.library { name } else { format!("super::{}::{name}", names::module(&to.library)) }
    }

    /// Returns the [`Wire`](../../esatto_fidl/wire/trait.Wire.html) type.
    pub(super) fn wire(&self, from: &Name, type_: &Type) -> String {
        let bounded = |name: &str, max: &Option<u64>| match max {
            Some(max) => format!("{name}<{max}>"),
            None => name.to_owned(),
        };
        let optional = |inner: String, is_optional: bool| match is_optional {
            true => format!("{WIRE}::Optional<{inner}>"),
            false => inner,
        };
        match type_ {
            Type::Primitive(primitive) => primitive.rust().to_owned(),
            Type::String { max, is_optional } => optional(bounded(&format!("{WIRE}::Str"), max), *is_optional),
            Type::Vector { element, max, is_optional } => {
                let max = max.map_or_else(String::new, |max| format!(", {max}"));
                optional(format!("{WIRE}::Vector<{}{max}>", self.wire(from, element)), *is_optional)
            }
            Type::Array { element, count } => format!("{WIRE}::Array<{}, {count}>", self.wire(from, element)),
            Type::Handle { is_optional, .. } => optional(format!("{ROOT}::Handle"), *is_optional),
            Type::Endpoint { side, protocol, is_optional } => optional(self.end(from, *side, protocol), *is_optional),
            Type::Declared(name) => self.path(from, name),
            Type::Box(name) => format!("{WIRE}::Boxed<{}>", self.path(from, name)),
            Type::OptionalUnion(name) => format!("{WIRE}::Optional<{}>", self.path(from, name)),
        }
    }

    /// As [`wire`](Self::wire), as a module inside of the library's writes it.
    pub(super) fn wire_in_module(&self, from: &Name, type_: &Type) -> String {
        let elsewhere = Name::new("", "");
        let own = format!("super::super::{}::", names::module(&from.library));
        self.wire(&elsewhere, type_).replace("super::", "super::super::").replace(&own, "super::")
    }

    /// Returns the type of values.
    pub(super) fn value(&self, from: &Name, type_: &Type) -> String {
        let optional = |inner: String, is_optional: bool| match is_optional {
            true => format!("Option<{inner}>"),
            false => inner,
        };
        match type_ {
            Type::Primitive(primitive) => primitive.rust().to_owned(),
            Type::String { is_optional, .. } => optional("String".to_owned(), *is_optional),
            Type::Vector { element, is_optional, .. } => {
                optional(format!("Vec<{}>", self.value(from, element)), *is_optional)
            }
            Type::Array { element, count } => format!("[{}; {count}]", self.value(from, element)),
            Type::Handle { is_optional, .. } => optional(format!("{ROOT}::Handle"), *is_optional),
            Type::Endpoint { side, protocol, is_optional } => optional(self.end(from, *side, protocol), *is_optional),
            Type::Declared(name) => self.path(from, name),
            Type::Box(name) | Type::OptionalUnion(name) => format!("Option<Box<{}>>", self.path(from, name)),
        }
    }

    /// Returns the wire type and the type of values of a member of a table or union, which are on
    /// the heap if the type is recursive.
    pub(super) fn member(&self, from: &Name, type_: &Type) -> (String, String) {
        let (wire, value) = (self.wire(from, type_), self.value(from, type_));
        match type_ {
            Type::Declared(name) if self.recursive.contains(name) => {
                (format!("{WIRE}::OnHeap<{wire}>"), format!("Box<{value}>"))
            }
            _ => (wire, value),
        }
    }

    fn end(&self, from: &Name, side: Side, protocol: &Name) -> String {
        let end = match side {
            Side::Client => "ClientEnd",
            Side::Server => "ServerEnd",
        };
        format!("{ROOT}::{end}<{}>", self.path(from, protocol))
    }
}

/// Path of the runtime crate.
pub(super) const ROOT: &str = "::esatto_fidl";

/// Path of its wire format.
pub(super) const WIRE: &str = "::esatto_fidl::wire";

/// Fails if two members would have one name.
fn check_members(declaration: &Declaration) -> Result<()> {
    let names: Vec<(&str, String)> = match &declaration.kind {
        DeclarationKind::Bits(numbers) => {
            numbers.members.iter().map(|member| (&*member.name, names::constant(&member.name))).collect()
        }
        DeclarationKind::Enum(numbers) => numbers
            .members
            .iter()
            .map(|member| {
                let rust = if numbers.is_strict { names::variant(&member.name) } else { names::constant(&member.name) };
                (&*member.name, rust)
            })
            .collect(),
        DeclarationKind::Struct(layout) => {
            layout.members.iter().map(|member| (&*member.name, names::field(&member.name))).collect()
        }
        DeclarationKind::Table(members) => {
            members.members.iter().map(|member| (&*member.name, names::field(&member.name))).collect()
        }
        DeclarationKind::Union(members) => {
            members.members.iter().map(|member| (&*member.name, names::variant(&member.name))).collect()
        }
        DeclarationKind::Protocol(protocol) => {
            let methods = protocol.methods.iter().map(|method| &*method.name);
            let full = |method: &str| format!("{}.{method}", declaration.name);
            return names::clash(methods)
                .map_or(Ok(()), |(first, second, rust)| Err(clash(&full(first), &full(second), &rust)));
        }
        _ => return Ok(()),
    };
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, rust) in &names {
        if let Some(other) = taken.insert(rust, name) {
            let full = |member: &str| format!("{}.{member}", declaration.name);
            return Err(clash(&full(other), &full(name), rust));
        }
    }
    Ok(())
}

/// Returns the types whose values would contain themselves.
fn recursive<'a>(libraries: &'a [Library], layouts: &Layouts<'a>) -> BTreeSet<&'a Name> {
    let all = libraries.iter().flat_map(|library| &library.declarations);
    all.filter(|declaration| reaches(layouts, declaration, &declaration.name, &mut BTreeSet::new()))
        .map(|declaration| &declaration.name)
        .collect()
}

/// Returns true if a value of `from` contains one of `to`.
fn reaches<'a>(layouts: &Layouts<'a>, from: &'a Declaration, to: &Name, seen: &mut BTreeSet<&'a Name>) -> bool {
    contained(from).into_iter().any(|name| {
        name == to
            || seen.insert(name) && layouts.get(name).is_some_and(|declaration| reaches(layouts, declaration, to, seen))
    })
}

/// Returns the declared types that values of a declaration contain directly.
fn contained(declaration: &Declaration) -> Vec<&Name> {
    let types: Vec<&Type> = match &declaration.kind {
        DeclarationKind::Struct(layout) => layout.members.iter().map(|member| &member.type_).collect(),
        DeclarationKind::Table(members) | DeclarationKind::Union(members) => {
            members.members.iter().map(|member| &member.type_).collect()
        }
        DeclarationKind::NewType(type_) => vec![type_],
        _ => Vec::new(),
    };
    types.into_iter().filter_map(direct).collect()
}

fn direct(type_: &Type) -> Option<&Name> {
    match type_ {
        Type::Declared(name) => Some(name),
        Type::Array { element, .. } => direct(element),
        _ => None,
    }
}
