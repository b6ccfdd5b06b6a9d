//! The JSON that Fuchsia's own compiler writes (`fidlc --json`) → the model of its library.
//!
//! Names are looked up and constants have values already. Ordinals, sizes, offsets, depths, bytes
//! out of line and counts of handles are there too: they must be the ones that this compiler
//! computes. Types that contain themselves, also by reference, are compared by size and offsets.

mod constants;
mod declarations;
mod extent;
mod json;
mod names;
mod protocols;
mod types;
mod verify;

use std::collections::BTreeMap;

use self::names::{Kind, Known};
use crate::error::{Error, Result};
use crate::model::Library;
use crate::zx;

/// JSON of one library.
pub(crate) struct Document<'t> {
    /// Name for errors.
    pub(crate) file: &'t str,
    pub(crate) text: &'t str,
}

/// Reads the documents, and adds their libraries to those that exist.
pub(crate) fn read(documents: &[Document<'_>], libraries: Vec<Library>) -> Result<Vec<Library>> {
    let mut roots = Vec::new();
    for document in documents {
        let root: json::Library = serde_json::from_str(document.text).map_err(|error| syntax(document.file, &error))?;
        names::check_library(document.file, &root.name)?;
        roots.push((document.file, root));
    }
    let mut all: BTreeMap<String, Library> = BTreeMap::new();
    for library in libraries {
        all.insert(library.name.clone(), library);
    }
    for (index, (file, root)) in roots.iter().enumerate() {
        if roots[..index].iter().any(|(_, other)| other.name == root.name) {
            return Err(error(file, format!("the library `{}` is in another file already", root.name)));
        }
        // The built-in library makes room for a real one.
        let is_built_in = root.name == zx::NAME && all.get(zx::NAME).is_some_and(|zx| zx.is_built_in);
        if !is_built_in && all.contains_key(&root.name) {
            return Err(error(file, format!("the library `{}` is in .fidl files already", root.name)));
        }
        all.remove(&root.name);
    }
    let mut known = Known::default();
    for library in all.values() {
        for declaration in &library.declarations {
            known.add(declaration.name.clone(), Kind::of(&declaration.kind));
        }
    }
    for (file, root) in &roots {
        declarations::names(file, root, &mut known)?;
    }
    for (file, root) in &roots {
        all.insert(root.name.clone(), declarations::library(file, root, &known)?);
    }
    protocols::compose(&roots, &mut all)?;
    let libraries: Vec<Library> = all.into_values().collect();
    verify::verify(&roots, &libraries)?;
    Ok(libraries)
}

/// Makes the error that something in the file is wrong.
fn error(file: &str, message: impl Into<String>) -> Error {
    Error::Ir { file: file.to_owned(), message: message.into() }
}

fn syntax(file: &str, error: &serde_json::Error) -> Error {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string().replace(&place, "");
    Error::Fidl { file: file.to_owned(), line: error.line(), column: error.column().max(1), message }
}
