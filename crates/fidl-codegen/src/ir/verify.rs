//! Sizes, offsets and extents of the file must be ours, and the rules of the language hold.

use std::cell::RefCell;

use super::error;
use super::extent::Extents;
use super::json;
use super::names::parse;
use crate::error::Result;
use crate::layout::{Layouts, NoShape, Shape};
use crate::model::{DeclarationKind, Library, Type, Value};

pub(super) fn verify(roots: &[(&str, json::Library)], libraries: &[Library]) -> Result<()> {
    let layouts = Layouts::new(libraries);
    let extents = RefCell::new(Extents::new(&layouts));
    for (file, root) in roots {
        let verifier = Verifier { file, layouts: &layouts, extents: &extents };
        if let Some(library) = libraries.iter().find(|library| library.name == root.name) {
            verifier.rules(library)?;
        }
        for json in root.struct_declarations.iter().chain(&root.table_declarations).chain(&root.union_declarations) {
            verifier.layout(json)?;
        }
        for json in &root.new_type_declarations {
            verifier.shape(&json.name, &json.name, json.type_.type_shape_v2.as_ref())?;
        }
    }
    Ok(())
}

/// Name of a member, its type, and its value.
type Use<'a> = (&'a str, &'a Type, Option<&'a Value>);

struct Verifier<'a> {
    file: &'a str,
    layouts: &'a Layouts<'a>,
    extents: &'a RefCell<Extents<'a>>,
}

impl Verifier<'_> {
    /// Compares the shape of a declaration with ours.
    fn shape(&self, full: &str, place: &str, theirs: Option<&json::Shape>) -> Result<()> {
        let name = parse(self.file, full)?;
        let (Some(theirs), Some(_)) = (theirs, self.layouts.get(&name)) else { return Ok(()) };
        let type_ = Type::Declared(name);
        let ours = self.layouts.shape(&type_).map_err(|error| self.no_shape(place, &error))?;
        self.compare(place, &type_, ours, theirs)
    }

    fn compare(&self, place: &str, type_: &Type, ours: Shape, theirs: &json::Shape) -> Result<()> {
        if (ours.size, ours.align) == (theirs.inline_size, theirs.alignment) {
            return self.compare_extent(place, type_, theirs);
        }
        let theirs = format!("{} bytes, aligned to {}", theirs.inline_size, theirs.alignment);
        let message = format!("{place}: the size is {theirs}, but ours {} bytes, aligned to {}", ours.size, ours.align);
        Err(error(self.file, message))
    }

    /// Compares what the file says of a type beside its size in place.
    fn compare_extent(&self, place: &str, type_: &Type, theirs: &json::Shape) -> Result<()> {
        let Some(ours) = self.extents.borrow_mut().get(type_) else { return Ok(()) };
        let properties = [
            ("depth", theirs.depth, ours.depth),
            ("max_handles", theirs.max_handles, ours.max_handles),
            ("max_out_of_line", theirs.max_out_of_line, ours.max_out_of_line),
            ("has_padding", theirs.has_padding.map(u64::from), ours.has_padding.into()),
            ("has_flexible_envelope", theirs.has_flexible_envelope.map(u64::from), ours.has_flexible_envelope.into()),
        ];
        match properties.iter().find(|(_, theirs, ours)| theirs.is_some_and(|theirs| theirs != *ours)) {
            Some((what, theirs, ours)) => {
                let theirs = theirs.unwrap_or_default();
                Err(error(self.file, format!("{place}: `{what}` is {theirs}, but ours {ours}")))
            }
            None => Ok(()),
        }
    }

    fn layout(&self, json: &json::Layout) -> Result<()> {
        self.shape(&json.name, &json.name, json.type_shape_v2.as_ref())?;
        let name = parse(self.file, &json.name)?;
        let Some(declaration) = self.layouts.get(&name) else { return Ok(()) };
        let types: Vec<(&str, &Type)> = match &declaration.kind {
            DeclarationKind::Struct(layout) => {
                layout.members.iter().map(|member| (member.name.as_str(), &member.type_)).collect()
            }
            DeclarationKind::Table(members) | DeclarationKind::Union(members) => {
                members.members.iter().map(|member| (member.name.as_str(), &member.type_)).collect()
            }
            _ => return Ok(()),
        };
        for (member, type_) in &types {
            let theirs = json.members.iter().find(|theirs| theirs.name.as_deref() == Some(member));
            let theirs = theirs.and_then(|member| member.type_.as_ref()).and_then(|type_| type_.type_shape_v2.as_ref());
            let place = format!("{}.{member}", json.name);
            let ours = self.layouts.shape(type_).map_err(|error| self.no_shape(&place, &error))?;
            if let Some(theirs) = theirs {
                self.compare(&place, type_, ours, theirs)?;
            }
        }
        if !matches!(declaration.kind, DeclarationKind::Struct(_)) {
            return Ok(());
        }
        let types: Vec<Type> = types.into_iter().map(|(_, type_)| type_.clone()).collect();
        let (offsets, _) = self.layouts.members(&types).map_err(|error| self.no_shape(&json.name, &error))?;
        for (member, ours) in json.members.iter().zip(offsets) {
            let theirs = member.field_shape_v2.as_ref().map_or(ours, |shape| shape.offset);
            if theirs != ours {
                let place = format!("{}.{}", json.name, member.name.as_deref().unwrap_or_default());
                return Err(error(self.file, format!("{place}: the offset is {theirs}, but ours {ours}")));
            }
        }
        Ok(())
    }

    /// Checks what the generator relies on.
    fn rules(&self, library: &Library) -> Result<()> {
        for declaration in &library.declarations {
            let name = declaration.name.to_string();
            let fail = |member: &str, message: &str| Err(error(self.file, format!("{name}{member}: {message}")));
            let (is_resource, is_table, types): (bool, bool, Vec<Use<'_>>) = match &declaration.kind {
                DeclarationKind::Struct(layout) => {
                    let members = layout.members.iter();
                    let members = members.map(|member| (&*member.name, &member.type_, member.default.as_ref()));
                    (layout.is_resource, false, members.collect())
                }
                DeclarationKind::Table(members) | DeclarationKind::Union(members) => {
                    let types = members.members.iter().map(|member| (&*member.name, &member.type_, None));
                    (members.is_resource, true, types.collect())
                }
                DeclarationKind::NewType(type_) => (true, false, vec![("", type_, None)]),
                DeclarationKind::Const { type_, value } => (true, false, vec![("", type_, Some(value))]),
                DeclarationKind::Bits(bits) => {
                    match bits.members.iter().find(|member| member.value.count_ones() != 1) {
                        Some(member) => return fail(&format!(".{}", member.name), "it is not one bit"),
                        None => continue,
                    }
                }
                _ => continue,
            };
            if !matches!(declaration.kind, DeclarationKind::Const { .. }) {
                let shape = self.layouts.shape(&Type::Declared(declaration.name.clone()));
                shape.map_err(|error| self.no_shape(&name, &error))?;
            }
            for (member, type_, value) in types {
                let place = if member.is_empty() { String::new() } else { format!(".{member}") };
                if is_table && type_.is_optional() {
                    return fail(&place, "a member of a table or union cannot be optional");
                }
                if !is_resource && self.layouts.is_resource(type_) {
                    return fail(&place, "it can hold handles, so the type must be a resource");
                }
                if !value.is_none_or(|value| self.is_value(value)) {
                    return fail(&place, "the value does not fit its type");
                }
            }
        }
        Ok(())
    }

    /// Returns true if a value of an enum or bits fits.
    fn is_value(&self, value: &Value) -> bool {
        let Value::Number { type_, value } = value else { return true };
        match self.layouts.get(type_).map(|declaration| &declaration.kind) {
            Some(DeclarationKind::Enum(numbers)) => {
                let is_member = numbers.members.iter().any(|member| member.value == *value);
                let is_in_range = numbers.type_.range().is_some_and(|(min, max)| (min..=max).contains(value));
                is_member || !numbers.is_strict && is_in_range
            }
            Some(DeclarationKind::Bits(bits)) => {
                let all = bits.members.iter().fold(0, |all, member| all | member.value);
                let is_in_range = bits.type_.range().is_some_and(|(min, max)| (min..=max).contains(value));
                is_in_range && (!bits.is_strict || value & !all == 0)
            }
            _ => false,
        }
    }

    fn no_shape(&self, place: &str, no_shape: &NoShape) -> crate::error::Error {
        let message = match no_shape {
            NoShape::Recursive(name) => format!("`{name}` contains itself"),
            NoShape::TooLarge => "the type has more than 4 GiB".to_owned(),
            NoShape::Unknown(name) => format!("`{name}` is no type"),
        };
        error(self.file, format!("{place}: {message}"))
    }
}
