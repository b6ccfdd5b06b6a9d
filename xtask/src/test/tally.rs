//! Counts of what passed, failed and was skipped.

use super::libtest::Outcome;
use super::skips::Skip;
use std::time::Duration;

/// Results of `cargo xtask test` so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: Vec<String>,
    skips: Vec<Skip>,
}

impl Tally {
    /// Counts one check that is not a test of `cargo test`.
    pub(crate) fn check(&mut self, name: &str, done: Result<(), String>) {
        match done {
            Ok(()) => self.passed += 1,
            Err(message) => {
                println!("FAILED {name}: {message}");
                self.failed.push(name.to_owned());
            }
        }
    }

    /// Counts the tests of one run of `cargo test`.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.passed += outcome.passed;
        self.failed.extend(outcome.failed);
        self.skips.extend(outcome.ignored);
    }

    /// Takes tests that were counted as passed but said that they could not run.
    pub(crate) fn skipped(&mut self, skips: Vec<Skip>) {
        self.passed = self.passed.saturating_sub(skips.iter().filter(|skip| skip.counted_as_passed).count());
        self.skips.extend(skips);
    }

    /// True if nothing failed and every skip is allowed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed.is_empty() && self.skips.iter().all(|skip| skip.allowed)
    }

    /// Prints the summary, its last line last.
    pub(crate) fn print(&self, elapsed: Duration) {
        println!("\n==== summary ({} s)", elapsed.as_secs());
        for skip in &self.skips {
            let verdict = if skip.allowed { "SKIPPED" } else { "SKIPPED, NOT ALLOWED (tests/allowed-skips.txt)" };
            println!("{verdict} {}: {}", skip.name, skip.reason);
        }
        for name in &self.failed {
            println!("FAILED {name}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skips.len());
    }
}
