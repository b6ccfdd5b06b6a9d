//! How declarations are read.

use super::json;
use super::names::{Kind, Known, check_member, parse};
use super::types::Place;
use super::{error, protocols};
use crate::error::Result;
use crate::model::{
    Declaration, DeclarationKind, Library, Members, Name, Notes, NumberMember, Numbers, OrdinalMember, ServiceMember,
    Side, Struct, StructMember, Type,
};

/// Adds the names of all declarations of a library.
pub(super) fn names(file: &str, root: &json::Library, known: &mut Known) -> Result<()> {
    if let Some(overlay) = root.overlay_declarations.first() {
        return Err(error(file, format!("{}: the experimental `overlay` is not supported", overlay.name)));
    }
    let mut add = |full: &str, kind: Kind| {
        let name = parse(file, full)?;
        if name.library != root.name {
            return Err(error(file, format!("`{full}` is declared in the library `{}`", root.name)));
        }
        if known.add(name, kind) { Ok(()) } else { Err(error(file, format!("`{full}` is declared twice"))) }
    };
    for declaration in &root.const_declarations {
        add(&declaration.name, Kind::Const)?;
    }
    for declaration in root.bits_declarations.iter().chain(&root.enum_declarations) {
        add(&declaration.name, Kind::Number)?;
    }
    for declaration in &root.struct_declarations {
        add(&declaration.name, if declaration.is_empty_success_struct { Kind::EmptySuccess } else { Kind::Struct })?;
    }
    for declaration in &root.table_declarations {
        add(&declaration.name, Kind::Table)?;
    }
    for declaration in &root.union_declarations {
        add(&declaration.name, Kind::Union)?;
    }
    for declaration in &root.new_type_declarations {
        add(&declaration.name, Kind::NewType)?;
    }
    for declaration in &root.protocol_declarations {
        add(&declaration.name, Kind::Protocol)?;
    }
    for declaration in &root.service_declarations {
        add(&declaration.name, Kind::Service)?;
    }
    for result in root.protocol_declarations.iter().flat_map(|protocol| protocols::results(file, protocol)) {
        known.set_result(&result);
    }
    Ok(())
}

/// Reads a library. Its protocols have their own methods only.
pub(super) fn library(file: &str, root: &json::Library, known: &Known) -> Result<Library> {
    let mut declarations = Vec::new();
    let mut add = |full: &str, json: &json::Notes, kind: DeclarationKind| {
        declarations.push(Declaration { name: parse(file, full)?, notes: notes(json), kind });
        Ok::<(), crate::error::Error>(())
    };
    for json in &root.const_declarations {
        let place = Place { file, name: &json.name, known };
        let type_ = place.type_(&json.type_)?;
        let value = place.value(&json.value, &type_)?;
        add(&json.name, &json.notes, DeclarationKind::Const { type_, value })?;
    }
    for json in &root.bits_declarations {
        add(&json.name, &json.notes, DeclarationKind::Bits(numbers(file, json, known)?))?;
    }
    for json in &root.enum_declarations {
        add(&json.name, &json.notes, DeclarationKind::Enum(numbers(file, json, known)?))?;
    }
    for json in root.struct_declarations.iter().filter(|json| !json.is_empty_success_struct) {
        add(&json.name, &json.notes, DeclarationKind::Struct(struct_(file, json, known)?))?;
    }
    for json in &root.table_declarations {
        add(&json.name, &json.notes, DeclarationKind::Table(members(file, json, known)?))?;
    }
    for json in &root.union_declarations {
        if known.kind(&parse(file, &json.name)?) != Some(Kind::Result) {
            add(&json.name, &json.notes, DeclarationKind::Union(members(file, json, known)?))?;
        }
    }
    for json in &root.new_type_declarations {
        let type_ = Place { file, name: &json.name, known }.type_(&json.type_)?;
        add(&json.name, &json.notes, DeclarationKind::NewType(type_))?;
    }
    for json in &root.protocol_declarations {
        add(&json.name, &json.notes, DeclarationKind::Protocol(protocols::protocol(file, json, known)?))?;
    }
    for json in &root.service_declarations {
        add(&json.name, &json.notes, DeclarationKind::Service(service(file, json, known)?))?;
    }
    declarations.sort_by(|left, right| left.name.cmp(&right.name));
    let doc = root.maybe_attributes.iter().find(|attribute| attribute.is("doc"));
    let doc = doc.and_then(|doc| doc.argument("value")).map(str::to_owned);
    Ok(Library { name: root.name.clone(), doc, is_built_in: false, declarations })
}

pub(super) fn notes(json: &json::Notes) -> Notes {
    let text = |attribute: &str, argument: &str| {
        json.attribute(attribute).and_then(|attribute| attribute.argument(argument)).map(str::to_owned)
    };
    let is_deprecated = json.deprecated || json.attribute("deprecated").is_some();
    let advice = text("available", "note").or_else(|| text("deprecated", "value"));
    let deprecated = is_deprecated.then(|| advice.unwrap_or_else(|| "deprecated".to_owned()));
    Notes { doc: text("doc", "value"), deprecated }
}

/// Fails if two names are equal, or one is no name.
pub(super) fn check_names<'n>(file: &str, of: &str, names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        check_member(file, of, name)?;
        if !seen.insert(name) {
            return Err(error(file, format!("`{name}` is there twice in `{of}`")));
        }
    }
    Ok(())
}

fn numbers(file: &str, json: &json::Numbers, known: &Known) -> Result<Numbers> {
    check_names(file, &json.name, json.members.iter().map(|member| member.name.as_str()))?;
    let place = Place { file, name: &json.name, known };
    let (json::NumberType::Name(type_) | json::NumberType::Type { subtype: type_ }) = &json.type_;
    let type_ = place.primitive(type_)?;
    if type_.range().is_none() {
        return Err(place.error(format!("expected an integer type, found `{}`", type_.fidl())));
    }
    let mut members = Vec::new();
    let mut values = std::collections::BTreeSet::new();
    for member in &json.members {
        let full = format!("{}.{}", json.name, member.name);
        let place = Place { name: &full, ..place };
        let value = place.integer(&member.value.value, type_)?;
        if !values.insert(value) {
            return Err(place.error(format!("another member has the value {value}")));
        }
        let is_unknown = member.notes.attribute("unknown").is_some();
        members.push(NumberMember { name: member.name.clone(), notes: notes(&member.notes), value, is_unknown });
    }
    if json.strict && members.is_empty() {
        return Err(place.error("it is strict and so needs a member"));
    }
    Ok(Numbers { type_, is_strict: json.strict, members })
}

fn struct_(file: &str, json: &json::Layout, known: &Known) -> Result<Struct> {
    check_names(file, &json.name, json.members.iter().filter_map(|member| member.name.as_deref()))?;
    let mut members = Vec::new();
    for member in &json.members {
        let (Some(name), Some(type_)) = (&member.name, &member.type_) else {
            return Err(error(file, format!("{}: a member of a struct has a name and a type", json.name)));
        };
        let full = format!("{}.{name}", json.name);
        let place = Place { file, name: &full, known };
        let type_ = place.type_(type_)?;
        let default = member.maybe_default_value.as_ref().map(|value| place.value(value, &type_)).transpose()?;
        members.push(StructMember { name: name.clone(), notes: notes(&member.notes), type_, default });
    }
    Ok(Struct { is_resource: json.resource, members })
}

/// Reads the members of a table or union.
fn members(file: &str, json: &json::Layout, known: &Known) -> Result<Members> {
    check_names(file, &json.name, json.members.iter().filter_map(|member| member.name.as_deref()))?;
    let mut members = Vec::new();
    let mut ordinals = std::collections::BTreeSet::new();
    for member in &json.members {
        let place = Place { file, name: &json.name, known };
        let ordinal = member.ordinal.filter(|ordinal| *ordinal > 0);
        let ordinal = ordinal.ok_or_else(|| place.error("a member of a table or union has an ordinal from 1"))?;
        if !ordinals.insert(ordinal) {
            return Err(place.error(format!("the ordinal {ordinal} is there twice")));
        }
        let (Some(name), Some(type_)) = (&member.name, &member.type_) else { continue };
        let full = format!("{}.{name}", json.name);
        let type_ = Place { name: &full, ..place }.type_(type_)?;
        members.push(OrdinalMember { ordinal, name: name.clone(), notes: notes(&member.notes), type_ });
    }
    if json.strict && members.is_empty() {
        return Err(error(file, format!("{}: it is strict and so needs a member", json.name)));
    }
    members.sort_by_key(|member| member.ordinal);
    Ok(Members { is_resource: json.resource, is_strict: json.strict, members })
}

fn service(file: &str, json: &json::Service, known: &Known) -> Result<Vec<ServiceMember>> {
    check_names(file, &json.name, json.members.iter().map(|member| member.name.as_str()))?;
    let mut members = Vec::new();
    for member in &json.members {
        let full = format!("{}.{}", json.name, member.name);
        let place = Place { file, name: &full, known };
        let Type::Endpoint { side: Side::Client, protocol, is_optional: false } = place.type_(&member.type_)? else {
            return Err(place.error("a member of a service is a `client_end:PROTOCOL`"));
        };
        members.push(ServiceMember { name: member.name.clone(), notes: notes(&member.notes), protocol });
    }
    Ok(members)
}

/// Returns the declaration of this name.
pub(super) fn find<'a>(library: &'a mut Library, name: &Name) -> Option<&'a mut Declaration> {
    library.declarations.iter_mut().find(|declaration| declaration.name == *name)
}
