//! From proto names to Rust names.

/// Words that must be written as raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Words that cannot even be raw identifiers.
const UNUSABLE: &[&str] = &["crate", "self", "Self", "super", "_"];

/// `name` as a Rust identifier.
pub(crate) fn ident(name: &str) -> String {
    if UNUSABLE.contains(&name) {
        format!("{name}_")
    } else if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// `name` as the name of a method, out of the way of the methods that `taken` lists.
pub(crate) fn method(name: &str, taken: &[&str]) -> String {
    if taken.contains(&name) { format!("{name}_") } else { ident(name) }
}

/// The module of a type: `TracePacket` → `trace_packet`, `V8JsCode` → `v8_js_code`, `IPCFrame` → `ipc_frame`.
pub(crate) fn module(name: &str) -> String {
    ident(&snake_case(name))
}

fn snake_case(name: &str) -> String {
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

/// The module of a generated file: its path without the ending, `/` as `_`, ending in `_proto` to stay clear of message modules.
pub(crate) fn file_module(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name + "_proto"
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
            ("Type", "r#type"),
            ("under_Score", "under_score"),
        ] {
            assert_eq!(module(name), module_name);
        }
        assert_eq!(file_module("trace/v8.rs"), "trace_v8_proto");
    }

    #[test]
    fn reserved_words_are_escaped() {
        assert_eq!(ident("type"), "r#type");
        assert_eq!(ident("self"), "self_");
        assert_eq!(method("message", &["message"]), "message_");
    }
}
