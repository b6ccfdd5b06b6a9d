//! Checks that could not run, and the list of those that may not have to.

use crate::shell;
use std::path::{Path, PathBuf};

/// A check that could not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Stands in `tests/allowed-skips.txt`.
    pub(crate) allowed: bool,
    /// The test returned early: its program counts it as passed.
    pub(crate) counted_as_passed: bool,
}

impl Skip {
    /// A test marked `#[ignore]`: never allowed unless it is for soak.
    pub(crate) fn of_ignored(name: &str, reason: &str) -> Self {
        let reason = if reason.is_empty() { "#[ignore] without a reason" } else { reason };
        Self { name: name.into(), reason: reason.into(), allowed: false, counted_as_passed: false }
    }
}

/// Where tests note that they were skipped, and which of them may be.
#[derive(Debug)]
pub(crate) struct Skips {
    file: PathBuf,
    allowed: Vec<Allowed>,
}

impl Skips {
    /// An empty file for the notes, and the checked-in list.
    pub(crate) fn new() -> Result<Self, String> {
        let folder = shell::target_dir().join("xtask");
        let file = folder.join("skips");
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, ""))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let list = shell::root().join("tests/allowed-skips.txt");
        let text = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        Ok(Self { file, allowed: Allowed::parse(&text)? })
    }

    /// The file to which tests append `NAME<tab>REASON` lines.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Turns a failure of xtask's own into a skip: not in CI.
    pub(crate) fn tolerate(&self, name: &str, error: String) -> Result<(), String> {
        if shell::in_ci() {
            return Err(error);
        }
        println!("SKIP {name}: {error}");
        let line = format!("{name}\t{}\n", error.replace(['\n', '\t'], " "));
        std::fs::OpenOptions::new()
            .append(true)
            .open(&self.file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()))
            .map_err(|error| format!("cannot write {}: {error}", self.file.display()))
    }

    /// Checks that were skipped since [`Skips::new`].
    pub(crate) fn collect(&self) -> Result<Vec<Skip>, String> {
        let text = std::fs::read_to_string(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        Ok(text.lines().map(|line| self.judge(line)).collect())
    }

    fn judge(&self, line: &str) -> Skip {
        let (name, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
        let allowed = self.allowed.iter().any(|entry| entry.covers(name, reason));
        Skip { name: name.into(), reason: reason.into(), allowed, counted_as_passed: true }
    }
}

/// A line of the list: `NAME: REASON`, where `*` stands for anything at the end of either.
#[derive(Debug, PartialEq, Eq)]
struct Allowed {
    name: String,
    reason: String,
}

impl Allowed {
    fn parse(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, reason) =
                    line.split_once(": ").ok_or_else(|| format!("tests/allowed-skips.txt: no reason in '{line}'"))?;
                Ok(Self { name: name.into(), reason: reason.trim().into() })
            })
            .collect()
    }

    fn covers(&self, name: &str, reason: &str) -> bool {
        matches(&self.name, name) && matches(&self.reason, reason)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_allowed_by_name_and_reason() {
        let list = Allowed::parse("# comment\n\nprobes::ftrace*: tracefs *\n").unwrap();
        assert!(list[0].covers("probes::ftrace_arrives", "tracefs cannot be mounted"));
        assert!(!list[0].covers("probes::ftrace_arrives", "no traced_probes"));
        assert!(!list[0].covers("probes::process_stats", "tracefs cannot be mounted"));
    }

    #[test]
    fn an_entry_needs_a_reason() {
        assert!(Allowed::parse("probes::ftrace").is_err());
    }
}
