//! `cargo xtask sim`: the simulator of the service (`tests/sim`), built to be fast and to see every assertion.

use crate::shell;
use std::path::PathBuf;
use std::process::Command;

/// Builds the simulator and runs it with these arguments.
///
/// # Errors
///
/// It cannot be built, or it found something.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let program = build()?;
    shell::run(Command::new(program).args(args).current_dir(shell::root()))
}

/// Builds it, with the planted bugs asleep in it.
///
/// # Errors
///
/// It does not build.
fn build() -> Result<PathBuf, String> {
    let target_dir = shell::target_dir().join("sim");
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut build = shell::cargo();
    build.args(["build", "--quiet", "--package", "esatto-sim", "--bin", "esatto-sim", "--profile", "sim"]);
    // In a folder of its own: other flags would rebuild everything else.
    build.env("RUSTFLAGS", format!("{own} --cfg esatto_planted").trim()).env("CARGO_TARGET_DIR", &target_dir);
    shell::run(&mut build)?;
    Ok(target_dir.join("sim/esatto-sim"))
}
