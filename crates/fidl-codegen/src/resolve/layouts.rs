//! How structs, tables, unions, enums and bits are resolved, inline ones included.

use super::scope::check_distinct;
use super::{Context, Places, Resolver, notes, versions};
use crate::error::Result;
use crate::generate::names;
use crate::model::{DeclarationKind, Members, Name, NumberMember, Numbers, OrdinalMember, Struct, StructMember};
use crate::syntax::{Layout, LayoutKind, Member, Modifier};

/// Highest ordinal of a table or union.
const MAX_ORDINAL: u64 = 64;

impl<'a> Resolver<'a> {
    /// Resolves a layout that is written in place of a type. Returns the name that it gets.
    pub(super) fn inline_layout(&mut self, layout: &'a Layout, context: Context<'a, '_>) -> Result<Name> {
        let given = match layout.attributes.get("generated_name") {
            Some(attribute) => {
                Some(attribute.text().ok_or_else(|| attribute.span.error("expected `@generated_name(\"NAME\")`"))?)
            }
            None => None,
        };
        let name = Name::new(&context.file.library.dotted(), given.unwrap_or(context.name));
        if self.scope.item(&name.library, &name.name).is_some() {
            let advice = "rename the member, or use `@generated_name(\"…\")`";
            return Err(layout.span.error(format!("this layout would be called `{name}`, which exists: {advice}")));
        }
        let kind = self.layout(&name, layout, context)?;
        self.insert(name.clone(), notes(&layout.attributes)?, kind, &layout.span)?;
        Ok(name)
    }

    pub(super) fn layout(
        &mut self,
        name: &Name,
        layout: &'a Layout,
        context: Context<'a, '_>,
    ) -> Result<DeclarationKind> {
        let modifiers = modifiers(&layout.modifiers)?;
        if let Some(overlay) = layout.modifiers.iter().find(|modifier| modifier.name == "overlay") {
            return Err(overlay.span.error("the experimental modifier `overlay` is not supported"));
        }
        let has = |name: &str| modifiers.iter().find(|modifier| modifier.name == name);
        let is_number = matches!(layout.kind, LayoutKind::Bits | LayoutKind::Enum);
        if let Some(resource) = has("resource").filter(|_| is_number) {
            return Err(resource.span.error("only a struct, table or union can be a `resource`"));
        }
        let strictness = has("strict").or_else(|| has("flexible"));
        if let Some(modifier) = strictness.filter(|_| matches!(layout.kind, LayoutKind::Struct | LayoutKind::Table)) {
            let message =
                format!("a struct is strict, a table is flexible: neither can be declared `{}`", modifier.name);
            return Err(modifier.span.error(message));
        }
        if let Some(subtype) = layout.subtype.as_ref().filter(|_| !is_number) {
            return Err(subtype.span.error("only enums and bits have an underlying type"));
        }
        let (is_strict, is_resource) = (has("strict").is_some(), has("resource").is_some());
        let mut present = Vec::new();
        for member in &layout.members {
            if versions::exists(&member.attributes)? {
                present.push(member);
            }
        }
        let members = present.iter().filter_map(|member| member.name.as_ref());
        let rust = match layout.kind {
            LayoutKind::Bits => names::constant,
            LayoutKind::Enum if !is_strict => names::constant,
            LayoutKind::Enum | LayoutKind::Union => names::variant,
            LayoutKind::Struct | LayoutKind::Table => names::field,
        };
        check_distinct(members, &format!("`{name}`"), rust)?;
        let (kind, members) = match layout.kind {
            LayoutKind::Bits | LayoutKind::Enum => self.numbers(name, layout, &present, is_strict, context)?,
            LayoutKind::Struct => self.struct_(&present, is_resource, context)?,
            LayoutKind::Table | LayoutKind::Union => {
                self.ordinals(name, layout, &present, is_strict, is_resource, context)?
            }
        };
        if layout.infers_resource {
            self.inferred.insert(name.clone());
        }
        let members = members.into_iter().map(|member| member.span.clone()).collect();
        self.places.insert(name.clone(), Places { declaration: layout.span.clone(), members });
        Ok(kind)
    }

    fn numbers(
        &mut self,
        name: &Name,
        layout: &'a Layout,
        present: &[&'a Member],
        is_strict: bool,
        context: Context<'a, '_>,
    ) -> Result<(DeclarationKind, Vec<&'a Member>)> {
        let type_ = self.underlying(layout, context.file)?;
        if is_strict && present.is_empty() {
            return Err(layout.span.error(format!("`{name}` is strict and so needs a member")));
        }
        let mut members: Vec<NumberMember> = Vec::new();
        for member in present {
            let Some(member_name) = &member.name else { continue };
            let Some(value) = self.member_value(layout, &member_name.text, context.file)? else { continue };
            if let Some(same) = members.iter().find(|other| other.value == value) {
                let message = format!("`{}` has the value of `{}`", member_name.text, same.name);
                return Err(member.span.error(message));
            }
            if layout.kind == LayoutKind::Bits && value.count_ones() != 1 {
                return Err(member.span.error(format!("`{}` is not one bit", member_name.text)));
            }
            let is_unknown = member.attributes.get("unknown").is_some();
            members.push(NumberMember {
                name: member_name.text.clone(),
                notes: notes(&member.attributes)?,
                value,
                is_unknown,
            });
        }
        let numbers = Numbers { type_, is_strict, members };
        let kind = match layout.kind {
            LayoutKind::Bits => DeclarationKind::Bits(numbers),
            _ => DeclarationKind::Enum(numbers),
        };
        Ok((kind, present.to_vec()))
    }

    fn struct_(
        &mut self,
        present: &[&'a Member],
        is_resource: bool,
        context: Context<'a, '_>,
    ) -> Result<(DeclarationKind, Vec<&'a Member>)> {
        let mut members = Vec::new();
        for member in present {
            let (Some(name), Some(type_)) = (&member.name, &member.type_) else { continue };
            let type_ = self.resolve_type(type_, Context { name: &camel_case(&name.text), ..context })?;
            let default = match &member.value {
                Some(value) => Some(self.evaluate(value, &type_, context.file)?),
                None => None,
            };
            members.push(StructMember { name: name.text.clone(), notes: notes(&member.attributes)?, type_, default });
        }
        Ok((DeclarationKind::Struct(Struct { is_resource, members }), present.to_vec()))
    }

    fn ordinals(
        &mut self,
        name: &Name,
        layout: &'a Layout,
        present: &[&'a Member],
        is_strict: bool,
        is_resource: bool,
        context: Context<'a, '_>,
    ) -> Result<(DeclarationKind, Vec<&'a Member>)> {
        let mut members: Vec<(OrdinalMember, &'a Member)> = Vec::new();
        let mut taken: Vec<u64> = Vec::new();
        for member in present {
            let Some((ordinal, span)) = &member.ordinal else { continue };
            if taken.contains(ordinal) {
                return Err(span.error(format!("the ordinal {ordinal} is there twice in `{name}`")));
            }
            if *ordinal > MAX_ORDINAL && layout.kind == LayoutKind::Table {
                return Err(span.error(format!("a table has ordinals up to {MAX_ORDINAL}")));
            }
            taken.push(*ordinal);
            let (Some(member_name), Some(type_)) = (&member.name, &member.type_) else { continue };
            let resolved = self.resolve_type(type_, Context { name: &camel_case(&member_name.text), ..context })?;
            if resolved.is_optional() {
                let what = if layout.kind == LayoutKind::Table { "table" } else { "union" };
                return Err(type_.span.error(format!("a member of a {what} cannot be optional")));
            }
            let (ordinal, name) = (*ordinal, member_name.text.clone());
            let notes = notes(&member.attributes)?;
            members.push((OrdinalMember { ordinal, name, notes, type_: resolved }, member));
        }
        members.sort_by_key(|(member, _)| member.ordinal);
        if is_strict && members.is_empty() {
            return Err(layout.span.error(format!("`{name}` is strict and so needs a member")));
        }
        let (members, places): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let members = Members { is_resource, is_strict, members };
        let kind = match layout.kind {
            LayoutKind::Table => DeclarationKind::Table(members),
            _ => DeclarationKind::Union(members),
        };
        Ok((kind, places))
    }
}

/// Returns the modifiers of the newest version.
pub(super) fn modifiers(written: &[Modifier]) -> Result<Vec<&Modifier>> {
    let mut modifiers: Vec<&Modifier> = Vec::new();
    for modifier in written {
        if !versions::holds(modifier)? {
            continue;
        }
        let group = |name: &str| match name {
            "strict" | "flexible" => 1,
            "open" | "ajar" | "closed" => 2,
            "resource" => 3,
            _ => 4,
        };
        if let Some(other) = modifiers.iter().find(|other| group(&other.name) == group(&modifier.name)) {
            return Err(modifier.span.error(format!("`{}` and `{}` exclude each other", other.name, modifier.name)));
        }
        modifiers.push(modifier);
    }
    Ok(modifiers)
}

/// Returns `snake_case` as `SnakeCase`.
pub(super) fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capitalized = words.map(|word| {
        let (first, rest) = word.split_at(1);
        let rest =
            if word.chars().all(|letter| !letter.is_ascii_lowercase()) { rest.to_lowercase() } else { rest.to_owned() };
        first.to_uppercase() + &rest
    });
    capitalized.collect()
}
