//! The generator: the model of libraries → Rust.
//!
//! Each library becomes a module, `fuchsia.io` the module `fuchsia_io`. The modules refer to each
//! other by relative paths, so that they can be at any place, all in one file.

mod constants;
mod context;
mod messages;
pub(crate) mod names;
mod numbers;
mod protocols;
mod tables;

use std::collections::BTreeSet;

use esatto_rust_text::{Printer, markdown};

use self::context::Context;
use crate::error::{Error, Result};
use crate::model::{Declaration, DeclarationKind, Library, Notes};

/// Generates the modules of the libraries in `wanted`; of all if it is empty.
pub(crate) fn generate(libraries: &[Library], wanted: &BTreeSet<String>) -> Result<String> {
    let context = Context::new(libraries)?;
    let mut p = Printer::default();
    for library in chosen(libraries, wanted) {
        p.gap();
        head(&mut p, library);
        p.block(format!("pub mod {}", names::module(&library.name)), |p| items(&context, p, library));
    }
    Ok(p.finish())
}

/// Like [`generate`], with a file for each library, and `mod.rs`, which declares them.
pub(crate) fn generate_files(libraries: &[Library], wanted: &BTreeSet<String>) -> Result<Vec<(String, String)>> {
    let context = Context::new(libraries)?;
    let mut files = Vec::new();
    let mut list = Printer::default();
    for library in chosen(libraries, wanted) {
        let module = names::module(&library.name);
        list.gap();
        head(&mut list, library);
        list.line(format!("pub mod {module};"));
        let mut p = Printer::default();
        items(&context, &mut p, library);
        files.push((format!("{module}.rs"), p.finish()));
    }
    files.push(("mod.rs".to_owned(), list.finish()));
    Ok(files)
}

fn chosen<'a>(libraries: &'a [Library], wanted: &BTreeSet<String>) -> impl Iterator<Item = &'a Library> {
    libraries.iter().filter(|library| wanted.is_empty() || wanted.contains(&library.name))
}

/// Writes the comment and the attributes of a library's module.
fn head(p: &mut Printer, library: &Library) {
    let text = library.doc.as_deref().map(markdown).unwrap_or_default();
    p.doc(if text.is_empty() { "FIDL library" } else { &text });
    if text.is_empty() {
        p.remark(&format!("`{}`", library.name));
    }
    p.line("#[allow(clippy::all, clippy::nursery, clippy::pedantic, dead_code, deprecated, unreachable_pub)]");
}

fn items(context: &Context<'_>, p: &mut Printer, library: &Library) {
    for declaration in &library.declarations {
        p.gap();
        item(context, p, declaration);
    }
}

fn item(context: &Context<'_>, p: &mut Printer, declaration: &Declaration) {
    match &declaration.kind {
        DeclarationKind::Const { type_, value } => constants::constant(context, p, declaration, type_, value),
        DeclarationKind::Bits(bits) => numbers::bits(context, p, declaration, bits),
        DeclarationKind::Enum(numbers) if numbers.is_strict => numbers::strict_enum(context, p, declaration, numbers),
        DeclarationKind::Enum(numbers) => numbers::flexible_enum(context, p, declaration, numbers),
        DeclarationKind::Struct(layout) => messages::struct_(context, p, declaration, layout),
        DeclarationKind::NewType(type_) => messages::new_type(context, p, declaration, type_),
        DeclarationKind::Table(members) => tables::table(context, p, declaration, members),
        DeclarationKind::Union(members) => tables::union(context, p, declaration, members),
        DeclarationKind::Protocol(protocol) => protocols::protocol(context, p, declaration, protocol),
        DeclarationKind::Service(members) => protocols::service(context, p, declaration, members),
    }
}

/// Writes the doc comment of an item, and the attribute if it is deprecated.
fn notes(p: &mut Printer, notes: &Notes, otherwise: &str) {
    let text = notes.doc.as_deref().map(markdown).filter(|text| !text.is_empty());
    p.doc(text.as_deref().unwrap_or(otherwise));
    if let Some(advice) = &notes.deprecated {
        p.line(format!("#[deprecated = {advice:?}]"));
    }
}

/// Makes the error that two names of a schema become one in Rust.
fn clash(first: &str, second: &str, rust: &str) -> Error {
    Error::Names { first: first.to_owned(), second: second.to_owned(), rust: rust.to_owned() }
}
