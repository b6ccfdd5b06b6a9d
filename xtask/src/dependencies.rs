//! The dependencies of every workspace against the rules of `deny.toml`, by cargo-deny.

use crate::shell;
use crate::test::{Skips, Tally};
use std::process::{Command, Stdio};

/// The version that the rules were written for.
const VERSION: &str = "0.20.2";

/// Entries of the rules that only one workspace needs are no mistake in the other workspaces.
const ONE_FOR_ALL: &[&str] = &["unmatched-skip-root", "license-exception-not-encountered"];
/// As above. The workspace of the crates needs each of these.
const ONE_FOR_CRATES: &[&str] = &["unmatched-skip", "unnecessary-skip", "license-not-encountered"];

/// Checks licences, versions and sources of all dependencies. Checks advisories if their database
/// can be fetched.
///
/// Skipped outside CI if cargo-deny is not installed.
///
/// # Errors
///
/// The workspaces cannot be listed, or a skip cannot be noted.
pub(crate) fn run(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    if let Err(error) = installed() {
        tally.check("cargo-deny", skips.tolerate("dependencies", error));
        return Ok(());
    }
    let workspaces = workspaces()?;
    for workspace in &workspaces {
        let mut check = deny(workspace);
        check.args(["check", "--hide-inclusion-graph"]);
        let allowed = if workspace == "Cargo.toml" { &[] } else { ONE_FOR_CRATES };
        check.args(ONE_FOR_ALL.iter().chain(allowed).flat_map(|lint| ["--allow", lint]));
        check.args(["licenses", "bans", "sources"]);
        tally.check(&format!("dependencies of {workspace}"), shell::run(&mut check));
    }
    if let Err(error) = shell::run(deny("Cargo.toml").args(["fetch", "db"])) {
        tally.check("database of advisories", skips.tolerate("advisories", format!("no database: {error}")));
        return Ok(());
    }
    for workspace in &workspaces {
        let mut check = deny(workspace);
        check.args(["check", "--hide-inclusion-graph", "advisories"]);
        tally.check(&format!("advisories for {workspace}"), shell::run(&mut check));
    }
    Ok(())
}

/// Returns the manifests of all workspaces: each has a `Cargo.lock` in git.
fn workspaces() -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    let list = shell::output(list.args(["ls-files", "--", "*Cargo.lock"]).current_dir(shell::root()))?;
    Ok(list.lines().filter_map(|lock| Some(format!("{}.toml", lock.strip_suffix(".lock")?))).collect())
}

fn deny(workspace: &str) -> Command {
    let mut deny = shell::cargo();
    deny.args(["deny", "--workspace", "--locked", "--config"]).arg(shell::root().join("deny.toml"));
    deny.args(["--manifest-path", workspace]);
    deny
}

/// # Errors
///
/// It is not, with the command that installs it.
fn installed() -> Result<(), String> {
    let mut version = shell::cargo();
    version.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    let install = format!("cargo install cargo-deny --version {VERSION} --locked");
    shell::run(&mut version).map_err(|_| format!("no cargo-deny: install it with `{install}`"))
}
