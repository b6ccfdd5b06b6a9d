//! Running `cargo test` and reading its output.

use super::skips::Skip;
use crate::shell;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// How a run is read.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Stands before the names of failures, to tell two runs of the same tests apart.
    pub(crate) label: &'static str,
}

/// Outcome of a run of `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    /// Tests marked `#[ignore]`, except those that belong to `cargo xtask soak`.
    pub(crate) ignored: Vec<Skip>,
}

/// Runs `cargo test …`, passing on its output line by line.
///
/// # Errors
///
/// Only if it cannot be started. A build that fails or a test program that dies is a failure in the
/// outcome.
pub(crate) fn run(command: &mut Command, run: Run) -> Result<Outcome, String> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", shell::display(command)))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let mut reader = Reader::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read from {}: {error}", shell::display(command)))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        reader.line(&line);
    }
    let status = child.wait().map_err(|error| format!("{}: {error}", shell::display(command)))?;
    let mut outcome = reader.finish(status.success());
    if !run.label.is_empty() {
        for name in &mut outcome.failed {
            *name = format!("{} {name}", run.label);
        }
    }
    Ok(outcome)
}

#[derive(Debug, Default)]
struct Reader {
    outcome: Outcome,
    /// Failures that the `test result` lines count.
    counted: usize,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.outcome.passed += count(counts, " passed");
            self.counted += count(counts, " failed");
        } else if let Some((name, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            if verdict == "FAILED" {
                self.outcome.failed.push(name.to_owned());
            } else if let Some(reason) = verdict.strip_prefix("ignored") {
                let reason = reason.trim_start_matches(", ");
                // Doc examples in a text that cannot run have no reason; they are no checks.
                if !reason.starts_with("soak") && !name.contains(" - ") {
                    self.outcome.ignored.push(Skip::of_ignored(name, reason));
                }
            }
        }
    }

    fn finish(mut self, success: bool) -> Outcome {
        // Output of a test can run into the line that names it: trust the larger number.
        while self.outcome.failed.len() < self.counted {
            self.outcome.failed.push("a test (see above)".into());
        }
        if !success && self.outcome.failed.is_empty() {
            self.outcome.failed.push("cargo test (see above)".into());
        }
        self.outcome
    }
}

/// The number in front of ` passed` in `ok. 5 passed; 0 failed; …`.
fn count(counts: &str, word: &str) -> usize {
    let before = counts.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> Outcome {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.finish(success)
    }

    #[test]
    fn counts_of_all_binaries_add_up() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(read(text, false), Outcome { passed: 13, failed: vec!["b".into()], ignored: vec![] });
    }

    #[test]
    fn a_build_that_fails_counts_as_one_failure() {
        assert_eq!(read("error: could not compile", false).failed.len(), 1);
    }

    #[test]
    fn a_failure_whose_line_was_torn_is_still_counted() {
        let text = "test b ... some output FAILE\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;";
        assert_eq!(read(text, false).failed.len(), 1);
    }

    #[test]
    fn ignored_tests_are_skips_unless_they_are_for_soak() {
        let text = "test a ... ignored, soak: 10 minutes\ntest b ... ignored, no kernel for it\ntest c ... ignored";
        let ignored = read(text, true).ignored;
        assert_eq!(ignored.iter().map(|skip| skip.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    }
}
