//! Names and tags of the categories that this process has used or announced, for messages about
//! patterns that match none of them.

use core::fmt;
use std::fmt::Write as _;

use super::registry;
use super::selection::covers;

/// Names that a message lists.
const MAX_NAMES: usize = 20;
/// Longer names are not compared.
const MAX_COMPARED: usize = 64;

/// Names of the categories that services list.
#[derive(Debug, Default)]
pub(crate) struct Names(Vec<&'static str>);

impl Names {
    pub(crate) fn all() -> Self {
        let mut names = Vec::new();
        registry::for_each(|category| names.push(category.name()));
        Self(names)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the end of a message that `patterns` select none of these: the name that is similar
    /// to one of them, if there is one, and the names.
    pub(crate) fn remedy<'a>(&self, patterns: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut text = String::from("; ");
        match patterns.into_iter().find_map(|pattern| similar(pattern, &self.0)) {
            Some(name) => _ = write!(text, "did you mean `{name}`? Known are: "),
            None => text.push_str("known are: "),
        }
        text.push_str(&self.list());
        text
    }

    /// Lists the names, or the first of them.
    fn list(&self) -> String {
        let shown = self.0.len().min(MAX_NAMES);
        let mut text = self.0[..shown].join(", ");
        match self.0.len() - shown {
            0 => {}
            more => _ = write!(text, " and {more} more"),
        }
        text
    }
}

/// Categories that are off because of their tags, for messages.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    names: Names,
    tags: Vec<&'static str>,
}

impl LeftOut {
    /// Adds a category, if it has such tags.
    pub(crate) fn add(&mut self, name: &'static str, tags: impl IntoIterator<Item = &'static str>) {
        let before = self.tags.len();
        self.tags.extend(tags);
        if self.tags.len() > before && !self.names.0.contains(&name) {
            self.names.0.push(name);
        }
        self.tags.sort_unstable();
        self.tags.dedup();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Returns the tags, sorted and without repetition.
    pub(crate) fn tags(&self) -> &[&'static str] {
        &self.tags
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = quoted(self.tags.iter().map(|tag| tag.as_bytes()));
        write!(f, "categories with the tag {tags} are recorded only on request ({})", self.names.list())
    }
}

/// Returns which of these patterns are names that no category of this process has, in words.
pub(crate) fn missing<'a>(patterns: impl IntoIterator<Item = &'a [u8]>) -> Option<String> {
    let (known, all) = (Names::all(), registry::all());
    // Categories that begin so may be made later.
    let is_beginning = |pattern: &[u8]| pattern.strip_suffix(b"*").is_some_and(|begin| !has_star(begin));
    let is_missing = |pattern: &&[u8]| {
        !pattern.is_empty() && !is_beginning(pattern) && !all.iter().any(|category| covers(pattern, category.name()))
    };
    let missing: Vec<&[u8]> = patterns.into_iter().filter(is_missing).collect();
    if missing.is_empty() || known.is_empty() {
        return None;
    }
    let star = if missing.iter().any(|pattern| has_star(pattern)) { " (`*` stands only at the end)" } else { "" };
    Some(format!("no category matches {}{star}{}", quoted(missing.iter().copied()), known.remedy(missing)))
}

/// Returns the text that a pattern leaves out no category of this process, if it is probably
/// mistyped.
pub(crate) fn mistyped_exclusion(pattern: &str) -> Option<String> {
    let (known, all) = (Names::all(), registry::all());
    if all.iter().any(|category| covers(pattern.as_bytes(), category.name())) {
        return None;
    }
    let likely = similar(pattern.as_bytes(), &known.0)?;
    Some(format!("`-{pattern}` leaves out no category; did you mean `-{likely}`?"))
}

fn has_star(pattern: &[u8]) -> bool {
    pattern.contains(&b'*')
}

/// Lists patterns.
pub(crate) fn quoted<'a>(patterns: impl IntoIterator<Item = &'a [u8]>) -> String {
    let quoted = patterns.into_iter().map(|pattern| format!("`{}`", String::from_utf8_lossy(pattern)));
    quoted.collect::<Vec<_>>().join(" or ")
}

/// Returns the text that no category has the tag, if none has it. `slow` and `debug` may be asked
/// for in case there are such categories.
pub(crate) fn missing_tag(tag: &str) -> Option<String> {
    if ["slow", "debug"].contains(&tag) || tag.contains('*') {
        return None;
    }
    let known = tags_without(tag).filter(|known| !known.is_empty())?;
    Some(format!("no category has the tag `{tag}`; known: {}", known.join(", ")))
}

/// Returns the tags of all categories, if no category has the tag.
fn tags_without(tag: &str) -> Option<Vec<&'static str>> {
    let mut tags: Vec<_> = registry::all().iter().flat_map(|category| category.tags()).copied().collect();
    tags.sort_unstable();
    tags.dedup();
    let is_known = tags.iter().any(|known| covers(tag.as_bytes(), known));
    (!is_known).then_some(tags)
}

/// Returns the most similar name, if one is similar enough to be meant.
fn similar(pattern: &[u8], names: &[&'static str]) -> Option<&'static str> {
    let pattern = pattern.strip_suffix(b"*").unwrap_or(pattern);
    if pattern.is_empty() || pattern.len() > MAX_COMPARED {
        return None;
    }
    let near = names.iter().filter(|name| name.len() <= MAX_COMPARED).filter_map(|&name| {
        let distance = distance(pattern, name.as_bytes());
        let is_similar = distance <= pattern.len().max(name.len()).div_ceil(3) && distance < pattern.len();
        is_similar.then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

/// Returns how many bytes have to be inserted, removed, replaced or swapped with their neighbour to
/// make one text of the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(!a[i - 1].eq_ignore_ascii_case(&b[j - 1]));
                let swapped = match i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    true => rows[i - 2][j - 2] + 1,
                    false => replaced,
                };
                replaced.min(swapped).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = ["net", "disk", "render.details"];
        for (pattern, meant) in [
            ("ent", Some("net")),
            ("NET", Some("net")),
            ("dsik*", Some("disk")),
            ("rendr.detail", Some("render.details")),
            ("x", None),
            ("*", None),
            ("", None),
            ("memory", None),
        ] {
            assert_eq!(similar(pattern.as_bytes(), &names), meant, "{pattern}");
        }
    }
}
