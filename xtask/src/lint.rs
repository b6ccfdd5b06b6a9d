//! What CI checks before it tests.

use crate::{bounds, codegen, layers, shell};

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
    shell::heading("generated code");
    check("codegen --check", codegen::check());
    shell::heading("rustfmt");
    check("rustfmt", shell::run(shell::cargo().args(["fmt", "--all", "--check"])));
    shell::heading("clippy");
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    check("clippy", shell::run(shell::cargo().args(clippy)));
    shell::heading("docs");
    let docs = ["doc", "--workspace", "--no-deps"];
    check("docs", shell::run(shell::cargo().args(docs).env("RUSTDOCFLAGS", "-D warnings")));
    if failed.is_empty() { Ok(()) } else { Err(format!("lint: {} failed", failed.join(", "))) }
}
