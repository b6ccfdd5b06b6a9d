//! Rules that need all declarations: sizes are finite, and value types hold no handles.

use super::Resolver;
use crate::error::Result;
use crate::layout::{Layouts, NoShape};
use crate::model::{DeclarationKind, Type};

impl Resolver<'_> {
    pub(super) fn check(&self) -> Result<()> {
        let layouts = Layouts::of(self.declarations.values());
        for (name, declaration) in &self.declarations {
            let Some(places) = self.places.get(name) else { continue };
            let (is_resource, types): (bool, Vec<&Type>) = match &declaration.kind {
                DeclarationKind::Struct(layout) => {
                    (layout.is_resource, layout.members.iter().map(|member| &member.type_).collect())
                }
                DeclarationKind::Table(members) | DeclarationKind::Union(members) => {
                    (members.is_resource, members.members.iter().map(|member| &member.type_).collect())
                }
                DeclarationKind::NewType(type_) => (true, vec![type_]),
                _ => continue,
            };
            if let Err(error) = layouts.shape(&Type::Declared(name.clone())) {
                return Err(places.declaration.error(message(&error)));
            }
            for (index, type_) in types.into_iter().enumerate() {
                let place = places.members.get(index).unwrap_or(&places.declaration);
                layouts.shape(type_).map_err(|error| place.error(message(&error)))?;
                if !is_resource && layouts.is_resource(type_) {
                    let message = format!("this member can hold handles, so `{}` must be a `resource`", name.name);
                    return Err(place.error(message));
                }
            }
        }
        Ok(())
    }
}

fn message(error: &NoShape) -> String {
    match error {
        NoShape::Recursive(name) => format!("`{name}` contains itself; put one of the structs in a `box<…>`"),
        NoShape::TooLarge => "the type has more than 4 GiB".to_owned(),
        NoShape::Unknown(name) => format!("`{name}` is no type"),
    }
}
