//! Applying bugs to the text of a source file.

use std::ops::Range;

use crate::bug::{Bug, Part};

/// An edit of a source file: the bytes at `range` are replaced.
struct Edit<'a> {
    bug: &'a str,
    range: Range<usize>,
    new: &'a str,
}

/// Returns `source` with all these bugs in it, asleep.
///
/// # Errors
///
/// The bugs whose piece of source is not there exactly once, or that change the same text.
pub fn plant<'a>(source: &str, bugs: impl IntoIterator<Item = &'a Bug>) -> Result<String, String> {
    let index = Index::new(source);
    let mut edits = Vec::new();
    let mut errors = Vec::new();
    for bug in bugs {
        match index.edits(bug) {
            Ok(found) => edits.extend(found),
            Err(error) => errors.push(format!("{}.bug: {error}", bug.name)),
        }
    }
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    for pair in edits.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            errors.push(format!("{}.bug and {}.bug change the same text", pair[0].bug, pair[1].bug));
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let mut planted = source.to_owned();
    for Edit { bug, range, new } in edits.into_iter().rev() {
        let old = &source[range.clone()];
        let switch = format!("if esatto_planted::is_awake({bug:?}) {{ {new} }} else {{ {old} }}");
        planted.replace_range(range, &switch);
    }
    Ok(planted)
}

impl Bug {
    /// Returns true if its piece of source is in `source` exactly once.
    #[must_use]
    pub fn is_in(&self, source: &str) -> bool {
        Index::new(source).edits(self).is_ok()
    }
}

/// A source file without its white space.
struct Index {
    text: String,
    /// For each byte of `text`, its place in `source`.
    places: Vec<usize>,
}

impl Index {
    fn new(source: &str) -> Self {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (at, char) in source.char_indices().filter(|(_, char)| !char.is_whitespace()) {
            text.push(char);
            places.extend(at..at + char.len_utf8());
        }
        Self { text, places }
    }

    fn edits<'b>(&self, bug: &'b Bug) -> Result<Vec<Edit<'b>>, String> {
        let piece: String = bug.parts.iter().map(|part| dense(part.old())).collect();
        let mut found = self.text.match_indices(&piece).map(|(at, _)| at);
        let Some(mut at) = found.next() else { return Err(format!("its source is not in {}", bug.file)) };
        if found.next().is_some() {
            return Err(format!("its source is more than once in {}", bug.file));
        }
        let mut edits = Vec::new();
        for part in &bug.parts {
            let end = at + dense(part.old()).len();
            if let Part::Change { new, .. } = part {
                // An empty old part follows the byte before it, so that the line end stays after
                // it.
                let start = if end > at { self.places[at] } else { self.end_of(at) };
                edits.push(Edit { bug: &bug.name, range: start..self.end_of(end), new: new.trim() });
            }
            at = end;
        }
        Ok(edits)
    }

    /// The end, in `source`, of the first `len` bytes of `text`.
    fn end_of(&self, len: usize) -> usize {
        len.checked_sub(1).map_or(0, |last| self.places[last] + 1)
    }
}

impl Part {
    /// The text that stands in the source file.
    fn old(&self) -> &str {
        match self {
            Self::Same(text) | Self::Change { old: text, .. } => text,
        }
    }
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(name: &str, piece: &str) -> Bug {
        Bug::parse(name, &format!("breaks: a\nfinding: b\nseed: 1\nfile: c.rs\n\n{piece}\n")).unwrap()
    }

    const SOURCE: &str = "fn f(x: u8) -> u8 {\n    // Ärger\n    g(\n        x + 1,\n    );\n    x + 2\n}\n";

    #[test]
    fn white_space_does_not_count() {
        let planted = plant(SOURCE, &[bug("one", "g([-x + 1-]{+x+},")]).unwrap();
        assert_eq!(planted, SOURCE.replace("x + 1", "if esatto_planted::is_awake(\"one\") { x } else { x + 1 }"));
    }

    #[test]
    fn pieces_of_several_bugs_may_overlap_if_their_changes_do_not() {
        let bugs = [bug("one", "g([-x+1-]{+x+},); x + 2"), bug("two", "x+1,); x + [-2-]{+3+}")];
        let planted = plant(SOURCE, &bugs).unwrap();
        assert!(planted.contains("is_awake(\"one\") { x } else { x + 1 }"), "{planted}");
        assert!(planted.contains("x + if esatto_planted::is_awake(\"two\") { 3 } else { 2 }\n}"), "{planted}");
        let error = plant(SOURCE, &[bug("one", "[-x + 1-]{+x+}"), bug("two", "x + [-1-]{+3+}")]).unwrap_err();
        assert_eq!(error, "one.bug and two.bug change the same text");
    }

    #[test]
    fn a_bug_may_only_add_something() {
        let planted = plant(SOURCE, &[bug("more", ");[--]{+g(x);+}")]).unwrap();
        assert!(
            planted.contains(");if esatto_planted::is_awake(\"more\") { g(x); } else {  }\n    x + 2"),
            "{planted}"
        );
    }

    #[test]
    fn a_piece_that_is_missing_or_ambiguous_is_named() {
        let error = plant(SOURCE, &[bug("gone", "h([-x-]{+1+})"), bug("many", "[-x +-]{++}")]).unwrap_err();
        assert_eq!(error, "gone.bug: its source is not in c.rs\nmany.bug: its source is more than once in c.rs");
    }
}
