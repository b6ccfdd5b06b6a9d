//! Checks beside `cargo test`: models under loom, features, generated code.

use crate::test::{Run, Tally, libtest};
use crate::{book, codegen, package, peers, shell, sim};
use serde_json::Value;
use std::process::Command;

/// The libraries that most programs build. Each change checks these with each feature and the
/// oldest compiler; [`compatibility`] checks all crates.
const LIBRARIES: [&str; 3] = ["esatto", "esatto-protozero", "esatto-tracing"];

/// Runs them all into `tally`.
///
/// # Errors
///
/// Cargo cannot be run.
pub(crate) fn run(tally: &mut Tally) -> Result<(), String> {
    shell::heading("generated code");
    tally.check("codegen --check", codegen::check());
    shell::heading("packages");
    tally.check("packages", package::run(false));
    shell::heading("features");
    let metadata = metadata()?;
    features(tally, packages(&metadata).filter(|package| LIBRARIES.iter().any(|name| package["name"] == *name)));
    shell::heading("protozero without an allocator");
    let mut bare = shell::cargo();
    bare.args(["test", "-p", "esatto-protozero", "--no-default-features", "--tests"]);
    tally.add(libtest::run(&mut bare, Run { label: "no alloc" })?);
    shell::heading("the SDK without features");
    let mut bare = shell::cargo();
    bare.args(["test", "-p", "esatto", "--no-default-features", "--test", "missing_features_are_named"]);
    tally.add(libtest::run(&mut bare, Run { label: "no features" })?);
    shell::heading("fuzz corpora");
    let mut replay = shell::cargo();
    // A separate workspace, because libFuzzer is C++: only the plain functions are built here.
    replay.args(["test", "--manifest-path", "fuzz/Cargo.toml", "-p", "esatto-fuzz-targets"]);
    replay.env("CARGO_TARGET_DIR", shell::target_dir());
    tally.add(libtest::run(&mut replay, Run { label: "fuzz" })?);
    shell::heading("simulation");
    tally.check("simulation", sim::run(&args(&["--seeds", "60"])));
    tally.check("simulation of the RPC library", sim::run(&args(&["--world", "rpc", "--seeds", "500"])));
    tally.check("seeds that found bugs", sim::run(&args(&["--found"])));
    tally.check("planted bugs", sim::run(&args(&["--planted", "known"])));
    for package in packages_with_loom(&metadata) {
        shell::heading(&format!("loom models of {package}"));
        tally.add(libtest::run(&mut loom(&package), Run { label: "loom" })?);
    }
    Ok(())
}

/// Builds the book, and checks each feature of all crates, and all crates with the oldest compiler,
/// which is installed.
///
/// # Errors
///
/// Cargo cannot be run.
pub(crate) fn compatibility(tally: &mut Tally) -> Result<(), String> {
    tally.check("book", book::run(&[]));
    features(tally, packages(&metadata()?));
    let tests = ["esatto-tests", "esatto-conformance", "esatto-rpc-tests", "esatto-sim", "esatto-planted"];
    // The last one is an example whose dependencies want a newer one, sooner or later.
    let excluded = tests.into_iter().chain(["traced-calls"]).flat_map(|name| ["--exclude", name]);
    let what: Vec<&str> = std::iter::once("--workspace").chain(excluded).collect();
    tally.check("oldest compiler", peers::run("install", &args(&["rustc"])).and_then(|()| with_oldest_compiler(&what)));
    Ok(())
}

fn features<'p>(tally: &mut Tally, packages: impl Iterator<Item = &'p Value>) {
    for args in packages.flat_map(feature_sets) {
        let mut clippy = shell::cargo();
        clippy.args(["clippy", "--quiet"]).args(&args).args(["--", "-D", "warnings"]);
        tally.check(&args.join(" "), shell::run(&mut clippy));
    }
}

/// The tests that are models of a package. Optimised, for they search large trees.
pub(crate) fn loom(package: &str) -> Command {
    let mut tests = shell::cargo();
    tests.args(["test", "--release", "-p", package, "--test", "loom*"]);
    // In a folder of their own: other flags would rebuild everything else.
    tests
        .env("RUSTFLAGS", rust_flags("--cfg esatto_loom"))
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_TARGET_DIR", shell::target_dir().join("loom"));
    tests
}

/// Checks the libraries that most programs build, as these build them, with the compiler of
/// `rust-version`, which is installed. Tests may want a newer one.
///
/// # Errors
///
/// One of them does not build.
pub(crate) fn oldest_compiler() -> Result<(), String> {
    with_oldest_compiler(&LIBRARIES.map(|name| ["-p", name]).concat())
}

fn with_oldest_compiler(what: &[&str]) -> Result<(), String> {
    let mut check = shell::cargo();
    check.arg("check").args(what);
    check
        .env("RUSTC", peers::folder()?.join("rustc/rustc"))
        .env("CARGO_TARGET_DIR", shell::target_dir().join("oldest"));
    shell::run(&mut check)
}

fn args(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

/// The caller's `RUSTFLAGS` and more.
fn rust_flags(more: &str) -> String {
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    format!("{own} {more}").trim().to_owned()
}

fn metadata() -> Result<Value, String> {
    let text = shell::output(shell::cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// Arguments of Cargo for a package without features, with each one alone, and with all. The build
/// of the workspace unites the features of its crates, and would hide a missing one.
fn feature_sets(package: &Value) -> Vec<Vec<String>> {
    let name = package["name"].as_str().unwrap_or_default();
    let features = package["features"].as_object().into_iter().flatten().map(|(feature, _)| feature.as_str());
    let features: Vec<&str> = features.filter(|feature| *feature != "default").collect();
    if features.is_empty() {
        return Vec::new();
    }
    let mut sets = vec![args(&["-p", name, "--no-default-features"])];
    sets.extend(features.iter().map(|feature| args(&["-p", name, "--no-default-features", "--features", feature])));
    sets.push(args(&["-p", name, "--all-features", "--all-targets"]));
    sets
}

fn packages_with_loom(metadata: &Value) -> Vec<String> {
    let has_loom = |package: &&Value| {
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        dependencies.iter().any(|dependency| dependency["name"] == "loom")
    };
    packages(metadata).filter(has_loom).filter_map(|package| package["name"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_built_alone() {
        let package = serde_json::json!({"name": "a", "features": {"default": ["x"], "x": [], "y": ["x"]}});
        let sets: Vec<String> = feature_sets(&package).iter().map(|args| args.join(" ")).collect();
        assert_eq!(
            sets,
            [
                "-p a --no-default-features",
                "-p a --no-default-features --features x",
                "-p a --no-default-features --features y",
                "-p a --all-features --all-targets",
            ]
        );
        assert!(feature_sets(&serde_json::json!({"name": "b", "features": {}})).is_empty());
    }
}
