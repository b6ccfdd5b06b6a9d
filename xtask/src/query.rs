//! The workspace `query/`, which has DataFusion and its own `Cargo.lock`.

use crate::peers;
use crate::shell;
use crate::test::{Run, Tally, libtest};
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "query/Cargo.toml";

/// Runs its tests.
///
/// # Errors
///
/// Cargo cannot be run.
pub(crate) fn test(tally: &mut Tally, skips: &Path) -> Result<(), String> {
    // Stock readers of lakes, and the tools of the wheel for Python. Where they cannot be had,
    // their tests are skipped with this reason.
    if let Err(error) = peers::run("install", &["readers".to_owned(), "wheel".to_owned()]) {
        eprintln!("xtask: {error}");
    }
    // The programs of Ballista are peers of the tests. Cargo builds those of a dependency by name.
    let mut peers = cargo("build");
    peers.args(["-p", "esatto-cluster", "-p", "ballista-scheduler", "-p", "ballista-executor"]);
    peers.args(["--bin", "esatto-cluster", "--bin", "ballista-scheduler", "--bin", "ballista-executor"]);
    shell::run(&mut peers)?;
    let mut tests = cargo("test");
    tests.args(["--workspace", "--no-fail-fast"]).env("ESATTO_SKIPS", skips);
    tally.add(libtest::run(&mut tests, Run { label: "query" })?);
    Ok(())
}

/// Checks the format of its sources.
///
/// # Errors
///
/// It differs from that of rustfmt.
pub(crate) fn rustfmt() -> Result<(), String> {
    shell::run(cargo("fmt").args(["--all", "--check"]))
}

/// Runs clippy on its crates.
///
/// Clippy comes as the compiler of a build, because a run of `cargo clippy` would compile the
/// dependencies a second time, which takes minutes.
///
/// # Errors
///
/// Clippy finds something.
pub(crate) fn clippy() -> Result<(), String> {
    let mut build = cargo("build");
    build.args(["--workspace", "--all-targets"]);
    build.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    // The form in which `cargo clippy` passes arguments on.
    build.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    shell::run(&mut build)
}

fn cargo(command: &str) -> Command {
    let mut cargo = shell::cargo();
    cargo.args([command, "--manifest-path", MANIFEST]);
    cargo
}
