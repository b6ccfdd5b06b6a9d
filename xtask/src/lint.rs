//! The checks that CI runs before the tests.

use crate::{book, bounds, codegen, layers, peers, prose, query, shell};
use std::process::Command;

/// Runs all checks, also after one has failed.
///
/// # Errors
///
/// The checks that failed.
pub(crate) fn run() -> Result<(), String> {
    let mut failed = Vec::new();
    let mut check = |name: &str, done: Result<(), String>| {
        if let Err(message) = done {
            eprintln!("xtask: {message}");
            failed.push(name.to_owned());
        }
    };
    shell::heading("layers");
    check("layers", layers::run(&[]));
    shell::heading("bounds");
    check("bounds", bounds::run());
    shell::heading("pages");
    check("book --check", book::run(&["--check".to_owned()]));
    shell::heading("prose");
    check("prose", prose::run(&[]));
    shell::heading("spelling");
    check("spelling", spelling());
    shell::heading("generated code");
    check("codegen --check", codegen::check());
    shell::heading("rustfmt");
    check("rustfmt", shell::run(shell::cargo().args(["fmt", "--all", "--check"])));
    check("rustfmt of query", query::rustfmt());
    shell::heading("clippy");
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    check("clippy", shell::run(shell::cargo().args(clippy)));
    shell::heading("docs");
    let docs = ["doc", "--workspace", "--no-deps"];
    check("docs", shell::run(shell::cargo().args(docs).env("RUSTDOCFLAGS", "-D warnings")));
    if failed.is_empty() { Ok(()) } else { Err(format!("lint: {} failed", failed.join(", "))) }
}

/// Checks the spelling with `typos` (settings: `typos.toml`). Outside CI, a machine that cannot
/// install it skips the check.
fn spelling() -> Result<(), String> {
    match peers::run("install", &["typos".to_owned()]) {
        Ok(()) => shell::run(Command::new(peers::folder()?.join("bin/typos")).current_dir(shell::root())),
        Err(error) if shell::in_ci() => Err(error),
        Err(error) => {
            println!("SKIP spelling: {error}");
            Ok(())
        }
    }
}
