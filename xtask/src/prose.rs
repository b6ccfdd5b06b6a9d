//! Machine-checked rules of our prose: the width of comments and pages, and how they begin.

use crate::shell;
use std::fs;
use std::path::Path;

/// Columns of a line of a comment or a page.
const WIDTH: usize = 100;

/// Files that are generated, or that come from elsewhere.
const FOREIGN: &[&str] = &["crates/schema/src/gen/", "tests/captures/", "tests/traces/", "LICENSE"];

/// First words that do not name the subject of a sentence.
const VAGUE: &[&str] = &["What", "Whatever", "Who", "Whoever", "Whom", "Whose", "Whether"];

/// Files and folders that are not mended yet.
const NOT_YET: &[&str] = &[];

/// Checks these files and folders, or all.
///
/// # Errors
///
/// Every breach, one per line.
pub(crate) fn run(paths: &[String]) -> Result<(), String> {
    let mut list = std::process::Command::new("git");
    list.args(["ls-files", "--"]).args(paths).current_dir(shell::root());
    let list = shell::output(&mut list)?;
    let is_ours = |path: &&str| !FOREIGN.iter().any(|foreign| path.starts_with(foreign));
    let is_due = |path: &&str| !paths.is_empty() || !NOT_YET.iter().any(|folder| path.starts_with(folder));
    let (mut files, mut breaches) = (0, Vec::new());
    for path in list.lines().filter(is_ours).filter(is_due) {
        let Some(kind) = Kind::of(path) else { continue };
        // A link may lead nowhere here, and a deleted file is still in the list.
        let Ok(text) = fs::read_to_string(shell::root().join(path)) else { continue };
        files += 1;
        breaches.extend(kind.breaches(&text).map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    if breaches.is_empty() {
        println!("prose: {files} files");
        Ok(())
    } else {
        Err(format!("{}\nxtask: {} lines of prose to mend", breaches.join("\nxtask: "), breaches.len()))
    }
}

/// How a kind of file marks its prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All of it is prose.
    Markdown,
    /// Lines that begin with one of these.
    Comments(&'static [&'static str]),
}

impl Kind {
    fn of(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "md" => Some(Self::Markdown),
            "rs" => Some(Self::Comments(&["///", "//!", "//"])),
            "c" | "cc" | "h" | "hpp" | "proto" => Some(Self::Comments(&["//", "/*", "*"])),
            "toml" | "yml" | "sh" | "txt" | "service" => Some(Self::Comments(&["#"])),
            _ => None,
        }
    }

    /// Number of each line that is wrong, from 1, and why.
    fn breaches(self, text: &str) -> impl Iterator<Item = (usize, String)> {
        let mut found = Vec::new();
        let (mut in_code, mut before) = (false, None);
        for (number, line) in (1..).zip(text.lines()) {
            let prose = self.prose(line);
            if let Some((mark, words)) = prose {
                let is_fence = words.starts_with("```") || words.starts_with("~~~");
                in_code ^= is_fence;
                let has_link = line.contains("://") || line.contains("](") || words.starts_with('[');
                let is_free = is_fence || in_code || has_link || words.starts_with('|');
                let columns = line.chars().count();
                if columns > WIDTH && !is_free {
                    found.push((number, format!("{columns} columns, more than {WIDTH}")));
                }
                let first = words.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                // A page may ask its reader a question.
                let begins = before != Some(mark) && self != Self::Markdown && !words.ends_with('?');
                if begins && !in_code && VAGUE.contains(&first) {
                    found.push((number, format!("begins with \"{first}\": name the thing")));
                }
                before = (!words.is_empty()).then_some(mark);
            } else {
                (in_code, before) = (false, None);
            }
        }
        found.into_iter()
    }

    /// The mark of a comment, and the words after it. A line of code has none.
    fn prose(self, line: &str) -> Option<(&'static str, &str)> {
        let line = line.trim();
        match self {
            Self::Markdown => Some(("", line)),
            Self::Comments(marks) => {
                let mark = marks.iter().find(|mark| line.starts_with(**mark))?;
                Some((mark, line[mark.len()..].trim()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        Kind::of(path).unwrap().breaches(text).map(|(line, _)| line).collect()
    }

    #[test]
    fn long_comments_are_found_and_code_is_not() {
        let long = "x".repeat(101);
        assert_eq!(lines("a.rs", &format!("let {long};\n    // {long}\n/// {long}\n")), [2, 3]);
        assert_eq!(lines("a.toml", &format!("{long} = 1\n# {long}")), [2]);
        assert_eq!(lines("a.md", &format!("# {long}\n\n{long}\n")), [1, 3]);
    }

    #[test]
    fn tables_links_and_examples_may_be_wide() {
        let long = "x".repeat(101);
        let text = format!("| {long} |\n<https://{long}>\n[a](b.md) {long}\n```\n{long}\n```\n{long}\n");
        assert_eq!(lines("a.md", &text), [7]);
        assert_eq!(lines("a.rs", &format!("//! ```text\n//! {long}\n//! ```\n")), [0; 0]);
    }

    #[test]
    fn a_comment_names_its_subject() {
        assert_eq!(lines("a.rs", "//! What a thread has.\n\n/// Whether it is on.\nfn f() {}\n/// Whole.\n"), [1, 3]);
        assert_eq!(lines("a.rs", "/// A thread knows\n/// What it is.\n///\n/// Who may call.\n"), [4]);
        assert_eq!(lines("a.md", "What is it?\n"), [0; 0]);
    }
}
