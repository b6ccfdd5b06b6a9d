//! The public items of the crates that programs are built with, against the lists in
//! `tests/public-api`. So the diff of a commit shows a change of the interface.

use crate::shell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const LISTS: &str = "tests/public-api";
/// Crates whose interface is a promise.
const CRATES: &[&str] = &[
    "esatto",
    "esatto-ipc",
    "esatto-fidl",
    "esatto-fidl-codegen",
    "esatto-protozero",
    "esatto-protozero-codegen",
    "esatto-tracing",
    "esatto-tower",
    "esatto-log",
    "esatto-console",
    "esatto-trace",
];

/// Compares, or writes the lists with `--update`.
///
/// # Errors
///
/// A list differs or cannot be made.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => compare(&lists()?),
        [flag] if flag == "--update" => {
            for (name, list) in lists()? {
                let path = path(name);
                fs::write(&path, list).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Ok(())
        }
        _ => Err("usage: cargo xtask api [--update]".to_owned()),
    }
}

/// The public items of each crate, one per line.
///
/// # Errors
///
/// A list cannot be made: rustdoc's JSON differs from compiler to compiler.
pub(crate) fn lists() -> Result<Vec<(&'static str, String)>, String> {
    let tool = tool()?;
    let list = |name| Ok((name, shell::output(Command::new(&tool).arg(document(name)?))?));
    CRATES.iter().copied().map(list).collect()
}

/// Compares lists with those that are checked in.
///
/// # Errors
///
/// The files that differ.
pub(crate) fn compare(lists: &[(&str, String)]) -> Result<(), String> {
    let mut differing = Vec::new();
    for (name, list) in lists {
        let known = fs::read_to_string(path(name)).unwrap_or_default();
        if *list != known {
            differences(&known, list).for_each(|line| println!("{line}"));
            differing.push(format!("{LISTS}/{name}.txt"));
        }
    }
    if differing.is_empty() {
        println!("public API: {} crates", lists.len());
        return Ok(());
    }
    Err(format!("{} differ: if you mean the change, run `cargo xtask api --update`", differing.join(", ")))
}

fn path(name: &str) -> PathBuf {
    shell::root().join(LISTS).join(format!("{name}.txt"))
}

/// Builds the program that reads rustdoc's JSON.
fn tool() -> Result<PathBuf, String> {
    let target_dir = shell::target_dir().join("public-api");
    let mut build = shell::cargo();
    build.args(["build", "--quiet", "--locked", "--manifest-path", "xtask/public-api/Cargo.toml"]);
    shell::run(build.env("CARGO_TARGET_DIR", &target_dir))?;
    Ok(target_dir.join("debug/list-public-api"))
}

/// Has rustdoc describe a crate, with all its features, and returns the file.
fn document(name: &str) -> Result<PathBuf, String> {
    let target_dir = shell::target_dir().join("public-api");
    let mut rustdoc = shell::cargo();
    rustdoc.args(["rustdoc", "--quiet", "--lib", "--all-features", "-p", name]);
    rustdoc.args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"]);
    shell::run(rustdoc.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target_dir))?;
    Ok(target_dir.join("doc").join(format!("{}.json", name.replace('-', "_"))))
}

/// Lines that only one of the lists has.
fn differences<'a>(known: &'a str, new: &'a str) -> impl Iterator<Item = String> + 'a {
    let lost = known.lines().filter(|line| !new.lines().any(|other| other == *line)).map(|line| format!("- {line}"));
    let gained = new.lines().filter(|line| !known.lines().any(|other| other == *line)).map(|line| format!("+ {line}"));
    lost.chain(gained)
}
