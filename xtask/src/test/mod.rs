//! `cargo xtask test`: everything that must hold, and a summary whose last line is
//! `N passed, N failed, N skipped`.

pub(crate) mod libtest;
mod skips;
mod tally;

pub(crate) use libtest::Run;
pub(crate) use skips::Skips;
pub(crate) use tally::Tally;

use crate::{api, checks, peers, shell};
use std::time::Instant;

/// Runs everything. With arguments: only `cargo test` with those arguments, for one's own work.
///
/// # Errors
///
/// Something failed or was skipped that is not on the list; the summary says what.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let start = Instant::now();
    let skips = Skips::new()?;
    let mut tally = Tally::default();

    shell::heading("peers");
    tally.check("peers", peers::run("install", &[]).or_else(|error| skips.tolerate("peers", error)));

    shell::heading("programs");
    let mut build = shell::cargo();
    build.args(["build", "--workspace", "--bins"]);
    tally.check("build of the programs", shell::run(&mut build));
    // A test builds this library; here it takes none of the test's time.
    let mut build = shell::cargo();
    build.args(["build", "--package", "esatto-tests", "--example", "plugin"]);
    tally.check("build of the plugin", shell::run(&mut build));

    shell::heading("tests of the workspace");
    let mut tests = shell::cargo();
    tests.arg("test");
    if args.is_empty() {
        tests.args(["--workspace", "--no-fail-fast"]);
    } else {
        tests.args(args);
    }
    tests.env("ESATTO_SKIPS", skips.file()).env("ESATTO_BIN", shell::target_dir().join("debug/esatto"));
    tally.add(libtest::run(&mut tests, Run::default())?);

    if args.is_empty() {
        checks::run(&mut tally)?;
        shell::heading("public API");
        let compared = match api::lists() {
            Ok(lists) => api::compare(&lists),
            Err(error) => skips.tolerate("public API", error),
        };
        tally.check("public API", compared);
        shell::heading("the oldest compiler");
        let built = match peers::run("install", &["rustc".to_owned()]) {
            Ok(()) => checks::oldest_compiler(),
            Err(error) => skips.tolerate("oldest compiler", error),
        };
        tally.check("oldest compiler", built);
    }

    tally.skipped(skips.collect()?);
    tally.print(start.elapsed());
    if tally.is_good() { Ok(()) } else { Err(String::new()) }
}
