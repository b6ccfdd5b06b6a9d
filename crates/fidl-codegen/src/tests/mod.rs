//! Tests of the front end: files in, model or error out.

mod accepted;
mod facts;
mod ir;
mod old;
mod refused;

use crate::compile::compile;
use crate::layout::Layouts;
use crate::model::{Declaration, DeclarationKind, Library, Name, Type};

fn libraries(text: &str) -> Vec<Library> {
    compile([("test.fidl", text)], &[]).unwrap()
}

fn find<'a>(libraries: &'a [Library], full: &str) -> &'a Declaration {
    let name = Name::parse(full).unwrap();
    let mut all = libraries.iter().flat_map(|library| &library.declarations);
    all.find(|declaration| declaration.name == name).unwrap_or_else(|| panic!("no {full}"))
}

/// Returns the error of a file that starts with `library test;`.
fn refused(text: &str) -> String {
    compile([("t.fidl", &*format!("library test;\n{text}"))], &[]).unwrap_err().to_string()
}

fn size(libraries: &[Library], full: &str) -> (u64, u64) {
    let shape = Layouts::new(libraries).shape(&Type::Declared(Name::parse(full).unwrap())).unwrap();
    (shape.size, shape.align)
}

fn offsets(libraries: &[Library], full: &str) -> Vec<u64> {
    let DeclarationKind::Struct(layout) = &find(libraries, full).kind else { panic!("no struct") };
    let types: Vec<Type> = layout.members.iter().map(|member| member.type_.clone()).collect();
    Layouts::new(libraries).members(&types).unwrap().0
}
