//! Building the measured programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// This workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `cargo` for this workspace, without what `cargo run` put into the environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST") || text == "CARGO_CRATE_NAME" {
            command.env_remove(&name);
        }
    }
    command
}

/// Builds the program of this workspace that is named as its package, as this one was built, and
/// returns where it lies.
pub(crate) fn build(package: &str) -> Result<PathBuf, String> {
    build_bin(package, package, &[])
}

/// Like [`build`], with features of the package, in a separate folder, so that several variants of
/// one program can exist at the same time.
pub(crate) fn build_variant(package: &str, features: &[&str]) -> Result<PathBuf, String> {
    eprintln!("bench: building {package} {}", features.join(" "));
    let program = build_bin(package, package, features)?;
    let folder = program.ancestors().nth(2).ok_or("own path: no target folder")?.join("measured");
    let name: Vec<&str> = std::iter::once(package).chain(features.iter().copied()).collect();
    let place = folder.join(name.join("+"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::copy(&program, &place))
        .map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(place)
}

/// Builds a program of a package, with features of that package.
pub(crate) fn build_bin(package: &str, bin: &str, features: &[&str]) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let folder = this.parent().ok_or("own path: no folder")?;
    let target = folder.parent().ok_or("own path: no target folder")?;
    let status = command()
        .args(["build", "--quiet", "--release", "-p", package, "--bin", bin, "--features", &features.join(",")])
        .arg("--target-dir")
        .arg(target)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{bin} does not build"));
    }
    Ok(target.join("release").join(bin))
}

/// Builds the small program of the daemon as it is shipped, and returns where it lies.
pub(crate) fn build_daemon() -> Result<PathBuf, String> {
    build_shipped("esatto-daemon", "traced")
}

/// Builds a program of the project as it is shipped, and returns where it lies.
pub(crate) fn build_shipped(package: &str, bin: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let target = this.ancestors().nth(2).ok_or("own path: no target folder")?.join("shipped");
    let status = command()
        .current_dir(root().parent().ok_or("the bench workspace has no parent")?)
        .args(["build", "--quiet", "--profile", "dist", "-p", package, "--bin", bin, "--target-dir"])
        .arg(&target)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{bin} does not build"));
    }
    Ok(target.join("dist").join(bin))
}

/// The target folder of this workspace.
pub(crate) fn target() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    Ok(this.ancestors().nth(2).ok_or("own path: no target folder")?.to_owned())
}

/// Builds the programs of the workspace `query/` in that workspace, for a release. Returns where
/// `esatto-query` and `esatto-cluster` lie.
pub(crate) fn build_query() -> Result<(PathBuf, PathBuf), String> {
    let query = root().parent().ok_or("the bench workspace has no parent")?.join("query");
    let target = query.join("target");
    let status = command()
        .current_dir(&query)
        .args(["build", "--quiet", "--release", "-p", "esatto-query", "-p", "esatto-cluster"])
        .args(["--bin", "esatto-query", "--bin", "esatto-cluster", "--target-dir"])
        .arg(&target)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the programs of query/ do not build".to_owned());
    }
    Ok((target.join("release/esatto-query"), target.join("release/esatto-cluster")))
}
