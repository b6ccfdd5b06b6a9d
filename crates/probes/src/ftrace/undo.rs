//! [`Undo`]: how a change of tracefs is undone, and its line in a journal.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// How a change is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undo {
    /// The file, with its whole path.
    pub(crate) path: PathBuf,
    pub(crate) how: How,
    pub(crate) value: String,
}

/// How the value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As the new content.
    Replace,
    /// As one more command.
    Append,
}

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A change is about to be made.
    Changed(Undo),
    /// The last change of this file was undone.
    Undone(PathBuf),
}

impl Undo {
    /// Writes the value.
    pub(crate) fn run(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        match self.how {
            How::Replace => options.write(true).truncate(true),
            How::Append => options.append(true),
        };
        let mut file = options.open(&self.path)?;
        if !self.value.is_empty() {
            file.write_all(self.value.as_bytes())?;
        }
        Ok(())
    }
}

impl Entry {
    /// Appends the line: the kind, the path and the value, divided by tabs.
    pub(crate) fn write_to(&self, journal: &mut Vec<u8>) {
        let (kind, path, value) = match self {
            Self::Changed(Undo { path, how: How::Replace, value }) => ("replace", path, value.as_str()),
            Self::Changed(Undo { path, how: How::Append, value }) => ("append", path, value.as_str()),
            Self::Undone(path) => ("undone", path, ""),
        };
        journal.extend_from_slice(kind.as_bytes());
        journal.push(b'\t');
        escape(&path.to_string_lossy(), journal);
        journal.push(b'\t');
        escape(value, journal);
        journal.push(b'\n');
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        let (kind, path, value) = (parts.next()?, unescape(parts.next()?)?, unescape(parts.next()?)?);
        let path = PathBuf::from(path);
        let is_plain = path.is_absolute() && path.components().all(|part| part != std::path::Component::ParentDir);
        match kind {
            _ if !is_plain => None,
            "replace" => Some(Self::Changed(Undo { path, how: How::Replace, value })),
            "append" => Some(Self::Changed(Undo { path, how: How::Append, value })),
            "undone" => Some(Self::Undone(path)),
            _ => None,
        }
    }
}

/// Returns what is left to undo after the lines of a journal, in the order in which it is to be
/// done. The last line may be incomplete.
pub(crate) fn left_to_undo(journal: &[u8]) -> Vec<Undo> {
    let mut changes: Vec<Option<Undo>> = Vec::new();
    // Positions of the changes of a file, the last one at the end.
    let mut of_file: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    let whole = journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = journal[..whole].split(|byte| *byte == b'\n');
    for entry in lines.filter_map(|line| Entry::parse(core::str::from_utf8(line).ok()?)) {
        match entry {
            Entry::Changed(undo) => {
                of_file.entry(undo.path.clone()).or_default().push(changes.len());
                changes.push(Some(undo));
            }
            Entry::Undone(path) => {
                if let Some(last) = of_file.get_mut(&path).and_then(Vec::pop) {
                    changes[last] = None;
                }
            }
        }
    }
    changes.into_iter().rev().flatten().collect()
}

fn escape(text: &str, line: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\n' => line.extend_from_slice(b"\\n"),
            byte => line.push(byte),
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\\' => match chars.next()? {
                't' => '\t',
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            char => char,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_says_what_is_left_to_undo() {
        let undo = |path: &str, how, value: &str| Undo { path: path.into(), how, value: value.into() };
        let clock = undo("/t/trace_clock", How::Replace, "local");
        let filter = undo("/t/set_ftrace_filter", How::Replace, "a\\b\nc\td\n");
        let probe = undo("/t/kprobe_events", How::Append, "-:g/p");
        let mut journal = Vec::new();
        for change in [&clock, &probe, &filter] {
            Entry::Changed(change.clone()).write_to(&mut journal);
        }
        assert_eq!(left_to_undo(&journal), [filter.clone(), probe.clone(), clock.clone()]);
        Entry::Undone(filter.path.clone()).write_to(&mut journal);
        assert_eq!(left_to_undo(&journal), [probe.clone(), clock.clone()]);
        journal.extend_from_slice(b"undone\t/t/kprobe_events");
        assert_eq!(left_to_undo(&journal), [probe.clone(), clock.clone()], "a line without end");
        journal.extend_from_slice(b"\t\nundone\t/t/kprobe_events\t\n");
        assert_eq!(left_to_undo(&journal), [clock], "a change is undone once");
    }

    #[test]
    fn odd_lines_are_left_out() {
        for line in
            ["", "replace", "replace\ta\tb\n", "replace\t/t/../etc/x\tb\n", "run\t/t/x\ty\n", "append\t/x\t\\q\n"]
        {
            assert_eq!(left_to_undo(line.as_bytes()), [], "{line}");
        }
    }
}
