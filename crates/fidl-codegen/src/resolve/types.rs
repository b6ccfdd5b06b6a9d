//! How uses of types are resolved: names, parameters, constraints.

use super::scope::{Found, Item};
use super::{Context, Resolver};
use crate::error::Result;
use crate::model::{Name, Primitive, Side, Type};
use crate::source::Span;
use crate::syntax::{Constant, ConstantPart, DeclarationKind, LayoutKind, Parameter, Path, Syntax, TypeHead, TypeUse};

/// Longest array or vector that the wire format has.
const MAX_COUNT: u64 = u32::MAX as u64;

/// Aliases that may name each other in a row.
const MAX_ALIASES: usize = 64;

impl<'a> Resolver<'a> {
    /// Resolves the use of a type. `context` names a layout that is written in place of a name.
    pub(super) fn resolve_type(&mut self, type_: &'a TypeUse, context: Context<'a, '_>) -> Result<Type> {
        let path = match &type_.head {
            TypeHead::Layout(layout) => {
                let name = self.inline_layout(layout, context)?;
                return self.constrain(Type::Declared(name), layout_kind(layout.kind), &type_.constraints, context);
            }
            TypeHead::Handle(object) => {
                let object = object.as_ref().map(|object| object.text.to_lowercase());
                let handle = Type::Handle { object, is_optional: false };
                return self.constrain(handle, Kind::Handle(None), &type_.constraints, context);
            }
            TypeHead::Name(path) => path,
        };
        if let Some(Found { item, rest }) = self.scope.find(context.file, path) {
            if let Some(member) = rest.first() {
                return Err(path.span.error(format!("`{}` has no type `{member}`", item.declaration.name.text)));
            }
            if let Some(parameter) = type_.parameters.first() {
                return Err(parameter_span(parameter).error(format!("`{}` has no parameters", path.dotted())));
            }
            return self.declared(item, type_, path, context);
        }
        let [name] = path.parts.as_slice() else {
            return Err(self.scope.unknown(context.file, path, "type"));
        };
        self.built_in(name, type_, path, context)
    }

    fn declared(&mut self, item: Item<'a>, type_: &'a TypeUse, path: &Path, context: Context<'a, '_>) -> Result<Type> {
        let name = Name::new(&item.file.library.dotted(), &item.declaration.name.text);
        match &item.declaration.kind {
            DeclarationKind::Alias(target) => {
                if !self.open.insert(name.clone()) || self.open.len() > MAX_ALIASES {
                    return Err(path.span.error(format!("the alias `{name}` names itself")));
                }
                let inner = Context { file: item.file, name: &item.declaration.name.text };
                let resolved = self.resolve_type(target, inner)?;
                self.open.remove(&name);
                let kind = self.kind_of(&resolved);
                self.constrain(resolved, kind, &type_.constraints, context)
            }
            DeclarationKind::Type(TypeUse { head, .. }) => {
                let kind = match head {
                    TypeHead::Layout(layout) => layout_kind(layout.kind),
                    TypeHead::Name(_) | TypeHead::Handle(_) => Kind::Fixed("a new type"),
                };
                self.constrain(Type::Declared(name), kind, &type_.constraints, context)
            }
            DeclarationKind::Resource(_) => {
                let handle = Type::Handle { object: None, is_optional: false };
                self.constrain(handle, Kind::Handle(Some(item)), &type_.constraints, context)
            }
            DeclarationKind::Protocol(_) if context.file.syntax == Syntax::Old => {
                let client = Type::Endpoint { side: Side::Client, protocol: name, is_optional: false };
                self.constrain(client, Kind::Endpoint, &type_.constraints, context)
            }
            DeclarationKind::Protocol(_) => {
                let shown = path.dotted();
                let message = format!("`{shown}` is a protocol: use `client_end:{shown}` or `server_end:{shown}`");
                Err(path.span.error(message))
            }
            DeclarationKind::Const { .. } | DeclarationKind::Service(_) => {
                Err(path.span.error(format!("`{}` is no type", path.dotted())))
            }
        }
    }

    fn built_in(&mut self, name: &str, type_: &'a TypeUse, path: &Path, context: Context<'a, '_>) -> Result<Type> {
        let parameters = type_.parameters.as_slice();
        let wrong = |expected: &str| Err(type_.span.error(format!("expected `{expected}`")));
        if let Some(primitive) = Primitive::from_fidl(name) {
            return match parameters {
                [] => self.constrain(Type::Primitive(primitive), Kind::Fixed("a number"), &type_.constraints, context),
                _ => wrong(name),
            };
        }
        let (resolved, kind) = match (name, parameters) {
            ("byte", []) => (Type::Primitive(Primitive::Uint8), Kind::Fixed("a number")),
            ("string", []) => (Type::String { max: None, is_optional: false }, Kind::Sized),
            ("bytes", []) => {
                let element = Box::new(Type::Primitive(Primitive::Uint8));
                (Type::Vector { element, max: None, is_optional: false }, Kind::Sized)
            }
            ("vector", [element]) => {
                let element = Box::new(self.element(element, context)?);
                (Type::Vector { element, max: None, is_optional: false }, Kind::Sized)
            }
            ("array", [element, count]) => {
                let element = Box::new(self.element(element, context)?);
                let count = self.count(count, context)?;
                (Type::Array { element, count }, Kind::Fixed("an array"))
            }
            ("box", [target]) => match self.element(target, context)? {
                Type::Declared(name) if self.is_layout(&name, LayoutKind::Struct) => {
                    (Type::Box(name), Kind::Fixed("a box"))
                }
                _ => return Err(parameter_span(target).error("only a struct can be in a box")),
            },
            ("client_end", []) => (endpoint(Side::Client), Kind::Endpoint),
            ("server_end", []) => (endpoint(Side::Server), Kind::Endpoint),
            ("vector", _) => return wrong("vector<TYPE>"),
            ("array", _) => return wrong("array<TYPE, COUNT>"),
            ("box", _) => return wrong("box<STRUCT>"),
            ("string_array" | "experimental_pointer" | "usize64" | "uintptr64" | "uchar", _) => {
                return Err(path.span.error(format!("the experimental type `{name}` is not supported")));
            }
            _ => return Err(self.scope.unknown(context.file, path, "type")),
        };
        let resolved = self.constrain(resolved, kind, &type_.constraints, context)?;
        match resolved {
            Type::Endpoint { protocol, .. } if protocol.name.is_empty() => wrong(&format!("{name}:PROTOCOL")),
            resolved => Ok(resolved),
        }
    }

    fn element(&mut self, parameter: &'a Parameter, context: Context<'a, '_>) -> Result<Type> {
        match parameter {
            Parameter::Type(type_) => self.resolve_type(type_, context),
            Parameter::Constant(constant) => Err(constant.span.error("expected a type")),
        }
    }

    /// Evaluates the size of an array.
    fn count(&mut self, parameter: &Parameter, context: Context<'a, '_>) -> Result<u64> {
        match parameter {
            Parameter::Constant(constant) => self.evaluate_size(constant, context.file),
            Parameter::Type(TypeUse { head: TypeHead::Name(path), parameters, constraints, span })
                if parameters.is_empty() && constraints.is_empty() =>
            {
                let parts = vec![ConstantPart::Name(path.clone())];
                self.evaluate_size(&Constant { span: span.clone(), parts }, context.file)
            }
            Parameter::Type(type_) => Err(type_.span.error("expected the size of the array")),
        }
    }

    /// Applies the constraints after the colon.
    fn constrain(
        &mut self,
        mut type_: Type,
        kind: Kind<'a>,
        constraints: &[Constant],
        context: Context<'a, '_>,
    ) -> Result<Type> {
        for constraint in constraints {
            if constraint.is_word("optional") {
                type_ = optional(type_, kind).map_err(|message| constraint.span.error(message))?;
                continue;
            }
            match &mut type_ {
                Type::String { max, .. } | Type::Vector { max, .. } => {
                    let size = self.evaluate_size(constraint, context.file)?;
                    if max.is_some() {
                        return Err(constraint.span.error("the size is bounded already"));
                    }
                    *max = (size < MAX_COUNT).then_some(size);
                }
                Type::Handle { object, .. } => match (object.is_none(), kind) {
                    (true, Kind::Handle(Some(resource))) => *object = Some(self.object(resource, constraint)?),
                    // The rights of a handle mean nothing for a descriptor.
                    _ if constraint.parts.iter().all(|part| matches!(part, ConstantPart::Text(_))) => {
                        return Err(constraint.span.error("expected the rights of the handle"));
                    }
                    _ => {}
                },
                Type::Endpoint { protocol, .. } if protocol.name.is_empty() => {
                    *protocol = self.protocol_name(constraint, context)?;
                }
                _ => return Err(constraint.span.error(format!("{} has no such constraint", kind.describe()))),
            }
        }
        Ok(type_)
    }

    fn protocol_name(&self, constraint: &Constant, context: Context<'a, '_>) -> Result<Name> {
        let path = constraint.as_path().ok_or_else(|| constraint.span.error("expected the name of a protocol"))?;
        match self.scope.find(context.file, path) {
            Some(Found { item, rest }) if rest.is_empty() => match item.declaration.kind {
                DeclarationKind::Protocol(_) => Ok(Name::new(&item.file.library.dotted(), &item.declaration.name.text)),
                _ => Err(path.span.error(format!("`{}` is no protocol", path.dotted()))),
            },
            _ => Err(self.scope.unknown(context.file, path, "protocol")),
        }
    }

    /// Returns the type of a handle's object in lower case, such as `vmo`.
    fn object(&self, resource: Item<'a>, constraint: &Constant) -> Result<String> {
        let path = constraint.as_path().ok_or_else(|| constraint.span.error("expected the type of the handle"))?;
        let DeclarationKind::Resource(properties) = &resource.declaration.kind else { unreachable!() };
        let subtype =
            properties.iter().find(|property| property.name.as_ref().is_some_and(|name| name.text == "subtype"));
        let known = subtype.and_then(|property| match &property.type_ {
            Some(TypeUse { head: TypeHead::Name(path), .. }) => self.scope.find(resource.file, path),
            _ => None,
        });
        let object = path.parts.last().map_or("", String::as_str);
        let enumeration = known.map(|found| found.item.declaration);
        if let Some(DeclarationKind::Type(TypeUse { head: TypeHead::Layout(layout), .. })) =
            enumeration.map(|enumeration| &enumeration.kind)
        {
            let mut members = layout.members.iter().filter_map(|member| member.name.as_ref());
            if !members.any(|member| member.text == object) {
                let enumeration = enumeration.map_or("", |enumeration| enumeration.name.text.as_str());
                return Err(path.span.error(format!("`{object}` is no member of `{enumeration}`")));
            }
        }
        Ok(object.to_lowercase())
    }

    fn kind_of(&self, type_: &Type) -> Kind<'a> {
        match type_ {
            Type::Primitive(_) => Kind::Fixed("a number"),
            Type::Array { .. } => Kind::Fixed("an array"),
            Type::String { .. } | Type::Vector { .. } => Kind::Sized,
            Type::Handle { .. } => Kind::Handle(None),
            Type::Endpoint { .. } => Kind::Endpoint,
            Type::Declared(name) if self.is_layout(name, LayoutKind::Union) => Kind::Union,
            Type::Declared(name) if self.is_layout(name, LayoutKind::Struct) => Kind::Struct,
            Type::Declared(_) => Kind::Fixed("this type"),
            Type::Box(_) => Kind::Fixed("a box"),
            Type::OptionalUnion(_) => Kind::Fixed("an optional union"),
        }
    }

    /// Returns true if the declaration is a layout of this kind.
    pub(super) fn is_layout(&self, name: &Name, kind: LayoutKind) -> bool {
        if let Some(item) = self.scope.item(&name.library, &name.name) {
            let layout = match &item.declaration.kind {
                DeclarationKind::Type(TypeUse { head: TypeHead::Layout(layout), .. }) => Some(layout.kind),
                _ => None,
            };
            return layout == Some(kind);
        }
        // Inline layouts are declared when they are resolved.
        let declared = self.declarations.get(name).map(|declaration| &declaration.kind);
        match declared {
            Some(crate::model::DeclarationKind::Struct(_)) => kind == LayoutKind::Struct,
            Some(crate::model::DeclarationKind::Table(_)) => kind == LayoutKind::Table,
            Some(crate::model::DeclarationKind::Union(_)) => kind == LayoutKind::Union,
            _ => false,
        }
    }
}

/// Makes a type optional.
fn optional(type_: Type, kind: Kind<'_>) -> std::result::Result<Type, String> {
    let is_twice = match &type_ {
        Type::String { is_optional, .. }
        | Type::Vector { is_optional, .. }
        | Type::Handle { is_optional, .. }
        | Type::Endpoint { is_optional, .. } => *is_optional,
        Type::Box(_) | Type::OptionalUnion(_) => true,
        _ => false,
    };
    if is_twice {
        return Err("the type is optional already".to_owned());
    }
    match (type_, kind) {
        (Type::String { max, .. }, _) => Ok(Type::String { max, is_optional: true }),
        (Type::Vector { element, max, .. }, _) => Ok(Type::Vector { element, max, is_optional: true }),
        (Type::Handle { object, .. }, _) => Ok(Type::Handle { object, is_optional: true }),
        (Type::Endpoint { side, protocol, .. }, _) => Ok(Type::Endpoint { side, protocol, is_optional: true }),
        (Type::Declared(name), Kind::Union) => Ok(Type::OptionalUnion(name)),
        // Files from before `box<…>` write optional structs so.
        (Type::Declared(name), Kind::Struct) => Ok(Type::Box(name)),
        _ => Err(format!("{} cannot be optional", kind.describe())),
    }
}

fn endpoint(side: Side) -> Type {
    Type::Endpoint { side, protocol: Name::new("", ""), is_optional: false }
}

fn parameter_span(parameter: &Parameter) -> &Span {
    match parameter {
        Parameter::Type(type_) => &type_.span,
        Parameter::Constant(constant) => &constant.span,
    }
}

/// Kind of a type, as far as constraints need it.
#[derive(Clone, Copy)]
enum Kind<'a> {
    /// Type without constraints.
    Fixed(&'static str),
    /// String or vector.
    Sized,
    /// Handle. The resource is unknown if an alias stands for it.
    Handle(Option<Item<'a>>),
    Endpoint,
    Struct,
    Union,
}

impl Kind<'_> {
    fn describe(self) -> &'static str {
        match self {
            Self::Fixed(what) => what,
            Self::Sized => "a string or vector",
            Self::Handle(_) => "a handle",
            Self::Endpoint => "an endpoint",
            Self::Struct => "a struct",
            Self::Union => "a union",
        }
    }
}

fn layout_kind(kind: LayoutKind) -> Kind<'static> {
    match kind {
        LayoutKind::Bits => Kind::Fixed("bits"),
        LayoutKind::Enum => Kind::Fixed("an enum"),
        LayoutKind::Struct => Kind::Struct,
        LayoutKind::Table => Kind::Fixed("a table"),
        LayoutKind::Union => Kind::Union,
    }
}
