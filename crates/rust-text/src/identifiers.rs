//! Rust identifiers for names of the schema.

/// Words that must be written as raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Words that cannot even be raw identifiers.
const UNUSABLE: &[&str] = &["crate", "self", "Self", "super", "_"];

/// Returns `name` as a Rust identifier.
#[must_use]
pub fn ident(name: &str) -> String {
    if UNUSABLE.contains(&name) {
        format!("{name}_")
    } else if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// Returns `name` as the name of a method that differs from those in `taken`.
#[must_use]
pub fn method(name: &str, taken: &[&str]) -> String {
    if taken.contains(&name) { format!("{name}_") } else { ident(name) }
}

/// Returns `FooBar` for `foo_bar` (`docs/spec/protozero.md` §9): drops underscores, and makes the
/// letter after one a capital.
#[must_use]
pub fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capitalised = words.flat_map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        [first.to_ascii_uppercase(), rest.to_owned()]
    });
    capitalised.collect()
}

/// Returns true if `name` is an identifier of the schema language.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true if `name` alone is no identifier of Rust.
#[must_use]
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name) || UNUSABLE.contains(&name)
}

/// Returns a type's name in the style of modules, which [`ident`] makes an identifier:
/// `TracePacket` → `trace_packet`, `V8JsCode` → `v8_js_code`, `IPCFrame` → `ipc_frame`.
#[must_use]
pub fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        if c.is_ascii_uppercase() && i > 0 && chars[i - 1] != '_' {
            let after_lower = !chars[i - 1].is_ascii_uppercase();
            let before_lower = chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
            if after_lower || before_lower {
                out.push('_');
            }
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_snake_case() {
        for (name, module_name) in [
            ("TracePacket", "trace_packet"),
            ("V8JsCode", "v8_js_code"),
            ("IPCFrame", "ipc_frame"),
            ("GPUCounter2D", "gpu_counter2_d"),
            ("Type", "type"),
            ("under_Score", "under_score"),
        ] {
            assert_eq!(snake_case(name), module_name);
        }
    }

    /// The examples of `docs/spec/protozero.md` §9.
    #[test]
    fn camel_case_changes_only_first_letters_of_words() {
        for (name, camel) in [
            ("foo_bar_baz", "FooBarBaz"),
            ("barBaz", "BarBaz"),
            ("MooMoo", "MooMoo"),
            ("URLEncoder", "URLEncoder"),
            ("XMap", "XMap"),
            ("UrLE_nco__der", "UrLENcoDer"),
            ("__bigBang", "BigBang"),
            ("U2", "U2"),
            ("bangBig__", "BangBig"),
        ] {
            assert_eq!(camel_case(name), camel);
        }
    }

    #[test]
    fn reserved_words_are_escaped() {
        assert_eq!(ident("type"), "r#type");
        assert_eq!(ident("self"), "self_");
        assert_eq!(method("message", &["message"]), "message_");
    }
}
