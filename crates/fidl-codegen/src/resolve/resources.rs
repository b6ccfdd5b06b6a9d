//! Which layouts of old files are resources.

use std::collections::{BTreeMap, BTreeSet};

use super::Resolver;
use crate::model::{Declaration, DeclarationKind, Name, Type};

impl Resolver<'_> {
    /// Makes a resource of each layout of an old file that has a member that can hold handles.
    pub(super) fn infer_resources(&mut self) {
        if self.inferred.is_empty() {
            return;
        }
        let mut users: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        let mut resources: Vec<&Name> = Vec::new();
        for (name, declaration) in &self.declarations {
            let types = member_types(declaration);
            let is_new_type = matches!(declaration.kind, DeclarationKind::NewType(_));
            let is_inferred = is_new_type || self.inferred.contains(name);
            if is_inferred && types.iter().any(|type_| self.holds_handles(type_)) {
                resources.push(name);
            }
            if is_inferred {
                for used in types.into_iter().filter_map(named) {
                    users.entry(used).or_default().push(name);
                }
            }
        }
        let mut found: BTreeSet<&Name> = resources.iter().copied().collect();
        while let Some(resource) = resources.pop() {
            for user in users.get(resource).into_iter().flatten() {
                if found.insert(user) {
                    resources.push(user);
                }
            }
        }
        let found: Vec<Name> = found.into_iter().cloned().collect();
        for name in found {
            match self.declarations.get_mut(&name).map(|declaration| &mut declaration.kind) {
                Some(DeclarationKind::Struct(layout)) => layout.is_resource = true,
                Some(DeclarationKind::Table(members) | DeclarationKind::Union(members)) => members.is_resource = true,
                _ => {}
            }
        }
    }

    /// Returns true if the type is a handle, or declared as a resource.
    fn holds_handles(&self, type_: &Type) -> bool {
        match type_ {
            Type::Handle { .. } | Type::Endpoint { .. } => true,
            Type::Vector { element, .. } | Type::Array { element, .. } => self.holds_handles(element),
            Type::Declared(name) | Type::Box(name) | Type::OptionalUnion(name) => {
                match self.declarations.get(name).map(|declaration| &declaration.kind) {
                    Some(DeclarationKind::Struct(layout)) => layout.is_resource,
                    Some(DeclarationKind::Table(members) | DeclarationKind::Union(members)) => members.is_resource,
                    _ => false,
                }
            }
            Type::Primitive(_) | Type::String { .. } => false,
        }
    }
}

fn member_types(declaration: &Declaration) -> Vec<&Type> {
    match &declaration.kind {
        DeclarationKind::Struct(layout) => layout.members.iter().map(|member| &member.type_).collect(),
        DeclarationKind::Table(members) | DeclarationKind::Union(members) => {
            members.members.iter().map(|member| &member.type_).collect()
        }
        DeclarationKind::NewType(type_) => vec![type_],
        _ => Vec::new(),
    }
}

/// Returns the declared type that values of the type contain.
fn named(type_: &Type) -> Option<&Name> {
    match type_ {
        Type::Declared(name) | Type::Box(name) | Type::OptionalUnion(name) => Some(name),
        Type::Vector { element, .. } | Type::Array { element, .. } => named(element),
        _ => None,
    }
}
