//! `cargo xtask sim`: builds the simulator of the service and of the RPC library (`tests/sim`) with
//! optimisation and with every assertion, and runs it.

mod planted_copy;

use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that tells the simulator's build that the bugs are in the sources.
const ARE_PLANTED: &str = "ESATTO_ARE_BUGS_PLANTED";

/// Builds the simulator and runs it with these arguments. With `--planted`, builds it from a copy
/// of the workspace that contains the planted bugs.
///
/// # Errors
///
/// The simulator cannot be built, or it found something.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let program = if args.iter().any(|arg| arg == "--planted") {
        let copy = shell::target_dir().join("sim/planted");
        planted_copy::write(&shell::root(), &copy)?;
        build(&copy, &copy.join("target"), "1")?
    } else {
        build(&shell::root(), &shell::target_dir().join("sim"), "")?
    };
    shell::run(Command::new(program).args(args).current_dir(shell::root()))
}

/// Builds the simulator of the workspace at `root`.
///
/// # Errors
///
/// It does not build.
fn build(root: &Path, target_dir: &Path, are_planted: &str) -> Result<PathBuf, String> {
    let mut build = shell::cargo();
    build.current_dir(root);
    build.args(["build", "--quiet", "--package", "esatto-sim", "--bin", "esatto-sim", "--profile", "sim"]);
    build.env("CARGO_TARGET_DIR", target_dir).env(ARE_PLANTED, are_planted);
    // Both builds share the crates that they compile in the same way: those of other projects.
    build.env("CARGO_BUILD_BUILD_DIR", shell::target_dir().join("sim/build"));
    shell::run(&mut build)?;
    Ok(target_dir.join("sim/esatto-sim"))
}
