//! Names in Rust for names of FIDL.

use std::collections::BTreeMap;

use esatto_rust_text::identifiers::{camel_case, ident, snake_case};

/// Names of the standard library that generated code uses. A type of the schema must not hide them.
const USED: [&str; 9] = ["Box", "Err", "None", "Ok", "Option", "Result", "Some", "String", "Vec"];

/// Returns the module of a library: `fuchsia_io` for `fuchsia.io`.
pub(super) fn module(library: &str) -> String {
    ident(&library.replace('.', "_"))
}

/// Returns the name of a type: `EchoAskResponse` for `Echo_Ask_Response`.
pub(crate) fn type_name(name: &str) -> String {
    // `Self` is the only keyword that looks like a type.
    let camel = ident(&camel_case(name));
    if USED.contains(&camel.as_str()) { format!("{camel}_") } else { camel }
}

/// Returns the name of a variant: `ByZero` for `BY_ZERO`, `TextOnly` for `text_only`.
pub(crate) fn variant(name: &str) -> String {
    let words = name.split('_').map(|word| match word.chars().any(|letter| letter.is_ascii_lowercase()) {
        true => word.to_owned(),
        false => word.to_ascii_lowercase(),
    });
    let camel = camel_case(&words.collect::<Vec<_>>().join("_"));
    // `_1` of `PORT__1` would lose its underscore, and digits cannot begin a name.
    if camel.starts_with(|first: char| first.is_ascii_digit()) { format!("_{camel}") } else { ident(&camel) }
}

/// Returns the name of a field, a function or a module.
pub(crate) fn field(name: &str) -> String {
    ident(&snake_case(name))
}

/// Returns the name of a constant.
pub(crate) fn constant(name: &str) -> String {
    ident(&snake_case(name).to_ascii_uppercase())
}

/// Returns two methods of a protocol whose names are one in Rust, and that name.
pub(crate) fn clash<'n>(methods: impl Iterator<Item = &'n str>) -> Option<(&'n str, &'n str, String)> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for method in methods {
        let (function, name) = (field(method), type_name(method));
        // They may be equal for a name such as `_1`, which is no clash.
        let is_one = function == name;
        for rust in [Some(function), Some(name).filter(|_| !is_one)].into_iter().flatten() {
            if let Some(other) = taken.insert(rust.clone(), method) {
                return Some((other, method, rust));
            }
        }
    }
    None
}
