//! The file with the progress of a long run, so that another run can continue it.
//!
//! ```text
//! done 300000..312345
//! finding 300017: every request is answered: …
//! ```
//!
//! The end of a range is exclusive. A seed that found something counts as done. To run it again,
//! use `--seed`, or remove its line and its place in the range.

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::runner::Finding;

/// The progress of earlier runs.
#[derive(Debug, Default)]
pub struct State {
    path: PathBuf,
    /// Ranges in order, with gaps between them.
    done: Vec<Range<u64>>,
    findings: Vec<Finding>,
}

impl State {
    /// Reads the file; a file that does not exist is an empty state.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line does not have the format.
    pub fn load(path: PathBuf) -> Result<Self, String> {
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            result => result.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        };
        let mut state = Self { path, ..Self::default() };
        for (number, line) in (1..).zip(text.lines()) {
            state.take(line).ok_or_else(|| format!("{}:{number}: what is {line:?}?", state.path.display()))?;
        }
        Ok(state)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if let Some(range) = line.strip_prefix("done ") {
            let (from, to) = range.split_once("..")?;
            let range: Range<u64> = from.parse().ok()?..to.parse().ok()?;
            let is_next = self.done.last().is_none_or(|last| last.end < range.start);
            return (is_next && !range.is_empty()).then(|| self.done.push(range));
        }
        let (seed, what) = line.strip_prefix("finding ")?.split_once(": ")?;
        self.findings.push(Finding { seed: seed.parse().ok()?, what: what.to_owned() });
        Some(())
    }

    /// Returns true if a seed was run.
    #[must_use]
    pub fn is_done(&self, seed: u64) -> bool {
        let after = self.done.partition_point(|range| range.start <= seed);
        after.checked_sub(1).is_some_and(|at| self.done[at].contains(&seed))
    }

    /// Returns the number of seeds of a range that were run.
    #[must_use]
    pub fn done_of(&self, seeds: &Range<u64>) -> u64 {
        let part = |range: &Range<u64>| range.end.min(seeds.end).saturating_sub(range.start.max(seeds.start));
        self.done.iter().map(part).sum()
    }

    /// Adds a seed that was run, with its finding if it has one.
    pub fn add(&mut self, seed: u64, finding: Option<&Finding>) {
        self.findings.extend(finding.cloned());
        if self.is_done(seed) {
            return;
        }
        let at = self.done.partition_point(|range| range.start <= seed);
        let continues = at > 0 && self.done[at - 1].end == seed;
        let precedes = self.done.get(at).is_some_and(|next| next.start == seed + 1);
        match (continues, precedes) {
            (true, true) => self.done[at - 1].end = self.done.remove(at).end,
            (true, false) => self.done[at - 1].end += 1,
            (false, true) => self.done[at].start = seed,
            (false, false) => self.done.insert(at, seed..seed + 1),
        }
    }

    /// Writes the state to its file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self) -> Result<(), String> {
        let mut text = String::new();
        for range in &self.done {
            let _ = writeln!(text, "done {}..{}", range.start, range.end);
        }
        for finding in &self.findings {
            let _ = writeln!(text, "finding {}: {}", finding.seed, finding.what.replace('\n', " "));
        }
        let fresh = self.path.with_extension("new");
        let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &self.path));
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_continues_where_another_ended() {
        let path = std::env::temp_dir().join(format!("esatto-sim-state-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut state = State::load(path.clone()).expect("a state without a file");
        let finding = Finding { seed: 7, what: "two\nlines: of it".to_owned() };
        for seed in [5, 9, 6, 8, 5] {
            state.add(seed, None);
        }
        state.add(7, Some(&finding));
        state.add(3, None);
        state.save().expect("the file is written");
        assert_eq!(
            fs::read_to_string(&path).expect("it is there"),
            "done 3..4\ndone 5..10\nfinding 7: two lines: of it\n"
        );

        let state = State::load(path.clone()).expect("what was written can be read");
        let done: Vec<u64> = (0..12).filter(|seed| state.is_done(*seed)).collect();
        assert_eq!(done, [3, 5, 6, 7, 8, 9]);
        assert_eq!((state.done_of(&(0..6)), state.done_of(&(6..100)), state.findings.len()), (2, 4, 1));
        fs::write(&path, "done 4..4\n").expect("the file is written");
        assert!(State::load(path.clone()).is_err_and(|error| error.contains(":1: what is")));
        fs::remove_file(&path).expect("it is there");
    }
}
