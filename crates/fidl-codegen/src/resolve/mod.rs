//! The resolver: syntax trees of files → the model of their libraries.
//!
//! It takes the newest version of each element, looks up names, evaluates constants, names inline
//! layouts, and checks the rules of the language.

mod checks;
mod constants;
mod layouts;
mod protocols;
mod resources;
mod scope;
mod types;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use self::scope::{Item, Scope};
use crate::error::Result;
use crate::model::{Declaration, DeclarationKind, Library, Name, Notes, ServiceMember, Side, Type, Value};
use crate::source::Span;
use crate::syntax::{self, Attributes, File, TypeHead};

/// Resolves the files of all libraries. The libraries come in the order of their names.
pub(crate) fn resolve(files: &[File]) -> Result<Vec<Library>> {
    let scope = Scope::new(files)?;
    for file in files {
        scope.check_uses(file)?;
    }
    let mut resolver = Resolver {
        scope: &scope,
        declarations: BTreeMap::new(),
        places: BTreeMap::new(),
        constants: BTreeMap::new(),
        open: BTreeSet::new(),
        inferred: BTreeSet::new(),
    };
    for (_, items) in scope.libraries() {
        for item in items {
            resolver.declare(item)?;
        }
    }
    resolver.compose()?;
    resolver.infer_resources();
    resolver.check()?;
    let Resolver { declarations, .. } = resolver;
    let mut libraries: BTreeMap<String, Library> = BTreeMap::new();
    for file in files {
        let name = file.library.dotted();
        let library = libraries.entry(name.clone()).or_insert_with(|| Library {
            name,
            doc: None,
            is_built_in: file.is_built_in,
            declarations: Vec::new(),
        });
        if let Some(doc) = doc(&file.attributes) {
            library.doc.get_or_insert_default().push_str(&doc);
        }
    }
    for declaration in declarations.into_values() {
        if let Some(library) = libraries.get_mut(&declaration.name.library) {
            library.declarations.push(declaration);
        }
    }
    Ok(libraries.into_values().collect())
}

struct Resolver<'a> {
    scope: &'a Scope<'a>,
    declarations: BTreeMap<Name, Declaration>,
    /// Where the declarations and their members are, for checks at the end.
    places: BTreeMap<Name, Places>,
    /// Values of constants that were evaluated.
    constants: BTreeMap<Name, Value>,
    /// Constants and aliases that are being resolved.
    open: BTreeSet<Name>,
    /// Layouts of old files, which are resources if a member is one.
    inferred: BTreeSet<Name>,
}

/// Place of a declaration, and of each of its members in the order of the model.
struct Places {
    declaration: Span,
    members: Vec<Span>,
}

/// Where a type is used.
#[derive(Clone, Copy)]
struct Context<'a, 'n> {
    file: &'a File,
    /// Name for a layout that is written here.
    name: &'n str,
}

impl<'a> Resolver<'a> {
    /// Resolves a declaration that is written as one.
    fn declare(&mut self, item: Item<'a>) -> Result<()> {
        let Item { file, declaration } = item;
        let name = Name::new(&file.library.dotted(), &declaration.name.text);
        let context = Context { file, name: &declaration.name.text };
        let kind = match &declaration.kind {
            syntax::DeclarationKind::Alias(type_) => {
                self.resolve_type(type_, context)?;
                return Ok(());
            }
            syntax::DeclarationKind::Resource(_) => return Ok(()),
            syntax::DeclarationKind::Const { type_, .. } => {
                let type_ = self.resolve_type(type_, context)?;
                DeclarationKind::Const { type_, value: self.constant_of(item)? }
            }
            syntax::DeclarationKind::Type(type_) => match &type_.head {
                TypeHead::Layout(layout) => {
                    if let Some(constraint) = type_.constraints.first() {
                        return Err(constraint.span.error("a declared layout has no constraints"));
                    }
                    self.layout(&name, layout, context)?
                }
                TypeHead::Name(_) | TypeHead::Handle(_) => DeclarationKind::NewType(self.resolve_type(type_, context)?),
            },
            syntax::DeclarationKind::Protocol(protocol) => {
                DeclarationKind::Protocol(self.protocol(&name, protocol, declaration, file)?)
            }
            syntax::DeclarationKind::Service(members) => DeclarationKind::Service(self.service(members, context)?),
        };
        let notes = match &declaration.kind {
            syntax::DeclarationKind::Type(syntax::TypeUse { head: TypeHead::Layout(layout), .. }) => {
                let mut notes = notes(&declaration.attributes)?;
                let inner = self::notes(&layout.attributes)?;
                notes.doc = notes.doc.or(inner.doc);
                notes
            }
            _ => notes(&declaration.attributes)?,
        };
        self.insert(name, notes, kind, &declaration.name.span)
    }

    fn insert(&mut self, name: Name, notes: Notes, kind: DeclarationKind, span: &Span) -> Result<()> {
        let places = self
            .places
            .entry(name.clone())
            .or_insert_with(|| Places { declaration: span.clone(), members: Vec::new() });
        places.declaration = span.clone();
        let declaration = Declaration { name: name.clone(), notes, kind };
        if self.declarations.insert(name.clone(), declaration).is_some() {
            let advice = "rename the member, or use `@generated_name(\"…\")`";
            return Err(span.error(format!("a second declaration would be called `{name}`: {advice}")));
        }
        Ok(())
    }

    fn service(&mut self, members: &'a [syntax::Member], context: Context<'a, '_>) -> Result<Vec<ServiceMember>> {
        let mut resolved = Vec::new();
        for member in members {
            let (Some(name), Some(type_)) = (&member.name, &member.type_) else { continue };
            if !versions::exists(&member.attributes)? {
                continue;
            }
            let Type::Endpoint { side: Side::Client, protocol, is_optional: false } =
                self.resolve_type(type_, context)?
            else {
                return Err(type_.span.error("a member of a service is a `client_end:PROTOCOL`"));
            };
            resolved.push(ServiceMember { name: name.text.clone(), notes: notes(&member.attributes)?, protocol });
        }
        Ok(resolved)
    }
}

fn notes(attributes: &Attributes) -> Result<Notes> {
    Ok(Notes { doc: doc(attributes), deprecated: versions::deprecation(attributes)? })
}

fn doc(attributes: &Attributes) -> Option<String> {
    attributes.get("doc").and_then(|attribute| attribute.text()).map(str::to_owned)
}
