//! Patterns over slash- or dot-separated names, and the messages that they select.

use prost_reflect::MessageDescriptor;

/// Returns true if `pattern` matches all of `name`. `*` stands for any text without a `/`, `**` for
/// any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("**") {
        return (0..=name.len()).filter(|&i| name.is_char_boundary(i)).any(|i| matches(rest, &name[i..]));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        let end = name.find('/').unwrap_or(name.len());
        return (0..=end).filter(|&i| name.is_char_boundary(i)).any(|i| matches(rest, &name[i..]));
    }
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some(p), Some(n)) if p == n => matches(&pattern[p.len_utf8()..], &name[n.len_utf8()..]),
        _ => false,
    }
}

/// Returns true if `pattern` selects a message: by the name of its file, or by its own full name
/// after a dot. The entries of maps are no messages of their own.
pub(crate) fn selects(pattern: &str, message: &MessageDescriptor) -> bool {
    !message.is_map_entry()
        && (matches(pattern, message.parent_file().name()) || matches(pattern, &format!(".{}", message.full_name())))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn one_star_matches_no_slash_and_two_match_any_text() {
        assert!(matches("a/*.proto", "a/b.proto"));
        assert!(!matches("a/*.proto", "a/b/c.proto"));
        assert!(matches("a/**.proto", "a/b/c.proto"));
        assert!(matches(".pkg.Foo", ".pkg.Foo"));
        assert!(!matches(".pkg.Foo", ".pkg.FooBar"));
    }
}
