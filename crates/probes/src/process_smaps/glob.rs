//! Matching of names against patterns with wildcards, as POSIX `fnmatch` without escapes.

/// Text that a wildcard may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wildcards {
    /// Anything but `/`.
    InPathElement,
    /// Anything.
    Anywhere,
}

/// Returns true if the pattern matches all of the name: `*`, `?`, `[a-z]` and `[!a-z]` are
/// wildcards.
///
/// Takes time in proportion to the product of the two lengths at most.
pub(crate) fn matches(pattern: &[u8], name: &[u8], wildcards: Wildcards) -> bool {
    let is_wild = |byte: u8| wildcards == Wildcards::Anywhere || byte != b'/';
    let (mut rest, mut text) = (pattern, name);
    // Pattern after the last star, and where that star's text ends. Earlier stars need no other
    // text.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (rest.split_first(), text.split_first()) {
            (Some((b'*', after)), _) => {
                retry = Some((after, text));
                rest = after;
                continue;
            }
            (None, None) => return true,
            (Some((b'?', after)), Some((&byte, others))) if is_wild(byte) => {
                (rest, text) = (after, others);
                continue;
            }
            (Some((b'[', set)), Some((&byte, others))) => match match_set(set, byte) {
                Some((true, after)) if is_wild(byte) => {
                    (rest, text) = (after, others);
                    continue;
                }
                // A bracket that is not closed is a bracket.
                None if byte == b'[' => {
                    (rest, text) = (set, others);
                    continue;
                }
                _ => {}
            },
            (Some((literal, after)), Some((byte, others))) if literal == byte && *literal != b'?' => {
                (rest, text) = (after, others);
                continue;
            }
            _ => {}
        }
        let Some((after, begin)) = retry else { return false };
        let Some((_, others)) = begin.split_first().filter(|(byte, _)| is_wild(**byte)) else { return false };
        retry = Some((after, others));
        (rest, text) = (after, others);
    }
}

/// Looks for a byte in a set whose opening bracket was read. Returns the pattern after the set, or
/// `None` if no bracket closes it.
fn match_set(set: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let is_negated = matches!(set.first(), Some(b'!' | b'^'));
    let mut rest = &set[usize::from(is_negated)..];
    let mut is_found = false;
    let mut is_first = true;
    loop {
        match rest {
            [b']', after @ ..] if !is_first => return Some((is_found != is_negated, after)),
            [from, b'-', to, after @ ..] if *to != b']' => {
                is_found |= (*from..=*to).contains(&byte);
                rest = after;
            }
            [one, after @ ..] => {
                is_found |= *one == byte;
                rest = after;
            }
            [] => return None,
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_a_shell() {
        let anywhere = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes(), Wildcards::Anywhere);
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*c", "a1b2b3c"),
            ("?[0-9][!a-c]", "x7d"),
            ("[]]", "]"),
            ("[a", "[a"),
            ("/usr/*/llvm", "/usr/lib/nested/llvm"),
            ("*.so*", "/x.y/libc.so.6"),
            ("\\*", "\\anything"),
        ] {
            assert!(anywhere(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("?", ""), ("[!a]", "a"), ("a*b", "abc"), ("[a", "a"), ("?", "ab")] {
            assert!(!anywhere(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn wildcards_stay_in_an_element_of_a_path() {
        let in_element =
            |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes(), Wildcards::InPathElement);
        assert!(in_element("/usr/*/llvm", "/usr/lib/llvm"));
        assert!(!in_element("/usr/*/llvm", "/usr/lib/nested/llvm"));
        assert!(!in_element("/usr?lib", "/usr/lib"));
        assert!(!in_element("/usr[/]lib", "/usr/lib"));
        assert!(in_element("/*/*b", "/a/bab"));
    }

    #[test]
    fn a_pattern_of_stars_takes_little_time() {
        let pattern = "*a".repeat(500) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(2000).as_bytes(), Wildcards::Anywhere));
    }
}
