//! [`Redaction`]: rules that hide names of mappings.

use esatto_schema::redaction_rule::MatchMode;
use esatto_schema::{RedactionRule, SmapsConfig};

use super::glob::{Wildcards, matches};

/// Rules of a config. The first one that matches a name decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redaction {
    rules: Vec<RedactionRule>,
}

const DELETED: &[u8] = b" (deleted)";
const REPLACEMENT: &[u8] = b"<pf_redacted>";

impl Redaction {
    pub(crate) fn new(config: &SmapsConfig) -> Self {
        Self { rules: config.name_redaction_rules.clone() }
    }

    /// Returns the name to be written. `scratch` takes it if it is another one.
    pub(crate) fn apply<'a>(&self, name: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let path = name.strip_suffix(DELETED).unwrap_or(name);
        let rule = self.rules.iter().find(|rule| is_match(rule, path));
        let Some(rule) = rule.filter(|rule| !name.is_empty() && rule.keep_full != Some(true)) else { return name };
        let (first, last) = kept(rule, name, path);
        if first.len() + last.len() >= name.len() {
            return name;
        }
        scratch.clear();
        scratch.extend_from_slice(first);
        scratch.extend_from_slice(rule.replacement_name.as_deref().unwrap_or(REPLACEMENT));
        scratch.extend_from_slice(last);
        scratch
    }
}

fn is_match(rule: &RedactionRule, path: &[u8]) -> bool {
    let pattern = rule.pattern.as_deref().unwrap_or_default();
    match rule.match_mode.unwrap_or_default() {
        MatchMode::MATCH_MODE_PREFIX => path.starts_with(pattern),
        MatchMode::MATCH_MODE_GLOB_PATH => matches(pattern, path, Wildcards::InPathElement),
        MatchMode::MATCH_MODE_GLOB_STRING => matches(pattern, path, Wildcards::Anywhere),
        // Modes of later versions hide rather more than too little.
        _ => true,
    }
}

/// Returns the beginning and the end of a name that a rule keeps. Only paths have such.
fn kept<'a>(rule: &RedactionRule, name: &'a [u8], path: &[u8]) -> (&'a [u8], &'a [u8]) {
    if name[0] != b'/' {
        return (&[], &[]);
    }
    let wanted = rule.keep_path_elements.unwrap_or(0) as usize;
    let slashes = memchr::memchr_iter(b'/', name);
    let first = match wanted {
        0 => 0,
        // The path begins with a slash, and each element has one after it.
        _ => slashes.take(wanted.saturating_add(1)).nth(wanted).map_or(name.len(), |slash| slash + 1),
    };
    let mut last = path.len();
    if rule.keep_file_extension == Some(true) {
        let slash = memchr::memrchr(b'/', name).unwrap_or(0);
        if let Some(dot) = memchr::memrchr(b'.', name).filter(|&dot| dot > slash + 1) {
            last = dot;
        }
    }
    (&name[..first], &name[last..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(rules: &[RedactionRule], name: &str) -> String {
        let redaction = Redaction { rules: rules.to_vec() };
        String::from_utf8_lossy(redaction.apply(name.as_bytes(), &mut Vec::new())).into_owned()
    }

    fn prefix(pattern: &str) -> RedactionRule {
        let match_mode = Some(MatchMode::MATCH_MODE_PREFIX);
        RedactionRule { pattern: Some(pattern.into()), match_mode, ..Default::default() }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let keep = RedactionRule { keep_full: Some(true), ..prefix("/data/public") };
        let rules = [keep, prefix("/data")];
        let names = ["/data/public/a", "/data/x/y", "/usr/lib", ""];
        assert_eq!(names.map(|name| apply(&rules, name)), ["/data/public/a", "<pf_redacted>", "/usr/lib", ""]);
    }

    #[test]
    fn parts_of_a_path_are_kept() {
        let elements = |count| RedactionRule { keep_path_elements: Some(count), ..prefix("") };
        assert_eq!(apply(&[elements(1)], "/x/y/z"), "/x/<pf_redacted>");
        assert_eq!(apply(&[elements(2)], "/x/y/z"), "/x/y/<pf_redacted>");
        assert_eq!(apply(&[elements(3)], "/x/y/z"), "/x/y/z");
        assert_eq!(apply(&[elements(u32::MAX)], "/x/y/z"), "/x/y/z");
        let extension = RedactionRule { keep_file_extension: Some(true), ..prefix("") };
        let names = ["/x/y/z.so", "/x/y/z.tar (deleted)", "/x/y.y/z", "/x/y/.z", "/x (deleted)", "[heap.x]"];
        let expected = [
            "<pf_redacted>.so",
            "<pf_redacted>.tar (deleted)",
            "<pf_redacted>",
            "<pf_redacted>",
            "<pf_redacted> (deleted)",
            "<pf_redacted>",
        ];
        assert_eq!(names.map(|name| apply(std::slice::from_ref(&extension), name)), expected);
        let named = RedactionRule { replacement_name: Some("?".into()), ..elements(1) };
        assert_eq!(apply(&[named], "/x/y/z"), "/x/?");
    }

    #[test]
    fn an_unknown_way_to_match_hides_all() {
        assert_eq!(apply(&[RedactionRule::default()], "/x"), "<pf_redacted>");
    }
}
