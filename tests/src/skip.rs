//! Checks that cannot run on this machine.

use std::io::Write;

/// Why a test cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip(pub String);

/// Runs a test that may find out that it cannot run.
///
/// The test prints a line for `cargo xtask test`, which compares it with `tests/allowed-skips.txt`.
///
/// # Panics
///
/// The skip cannot be noted.
pub fn skip(test: impl FnOnce() -> Result<(), Skip>) {
    let Err(Skip(reason)) = test() else { return };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    eprintln!("SKIP {name}: {reason}");
    if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
        let line = format!("{name}\t{}\n", reason.replace(['\n', '\t'], " "));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip is noted");
    }
}
