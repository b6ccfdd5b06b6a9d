//! Names in the bindings, as a schema would have them.

use quote::format_ident;
use syn::Ident;
use syn::ext::IdentExt;

/// Returns `get_all` as `GetAll`.
pub(super) fn camel_case(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('_').map(capitalised).collect()
}

/// Returns `TheStore` as `the_store`.
pub(super) fn snake_case(name: &Ident) -> Ident {
    let mut module = String::new();
    for c in name.unraw().to_string().chars() {
        if c.is_ascii_uppercase() && !module.is_empty() && !module.ends_with('_') {
            module.push('_');
        }
        module.push(c.to_ascii_lowercase());
    }
    format_ident!("{}", identifier(&module), span = name.span())
}

/// Returns a name as an identifier; with an underscore if it means something to Rust.
pub(super) fn identifier(name: &str) -> Ident {
    syn::parse_str(name).unwrap_or_else(|_| format_ident!("{name}_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_schemas() {
        assert_eq!(camel_case("get_all"), "GetAll");
        assert_eq!(snake_case(&format_ident!("TheStore")), "the_store");
        assert_eq!(identifier("Self"), "Self_");
    }
}
