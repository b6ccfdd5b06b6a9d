//! `cargo xtask soak`: what takes too long for every change.

use crate::shell;
use crate::test::{Run, libtest};

/// Name, what it does, the arguments for `cargo`.
const RUNS: &[(&str, &str, &[&str])] =
    &[("ignored", "tests marked #[ignore = \"soak…\"]", &["test", "--workspace", "--no-fail-fast", "--", "--ignored"])];

/// Runs those named in `args`, or all.
///
/// # Errors
///
/// An unknown name, or something failed.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--list") {
        for (name, what, _) in RUNS {
            println!("{name:12} {what}");
        }
        println!("{:12} the workspace builds with the oldest supported compiler (RUSTC_MSRV)", "msrv");
        return Ok(());
    }
    let known = |name: &String| name == "msrv" || RUNS.iter().any(|(other, ..)| other == name);
    if let Some(unknown) = args.iter().find(|name| !known(name)) {
        return Err(format!("soak knows no '{unknown}' (see --list)"));
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let mut failed = Vec::new();
    let mut skipped = Vec::new();
    let mut passed = 0;
    for (name, what, arguments) in RUNS {
        if !wanted(name) {
            continue;
        }
        shell::heading(what);
        let mut cargo = shell::cargo();
        cargo.args(*arguments).env("ESATTO_BIN", shell::target_dir().join("debug/esatto"));
        let outcome = libtest::run(&mut cargo, Run::default())?;
        passed += outcome.passed;
        failed.extend(outcome.failed);
    }
    if wanted("msrv") {
        match msrv() {
            Ok(true) => passed += 1,
            Ok(false) => skipped.push("msrv: RUSTC_MSRV names no compiler of the oldest supported version".to_owned()),
            Err(message) => failed.push(message),
        }
    }
    shell::heading("summary");
    skipped.iter().for_each(|reason| println!("SKIPPED {reason}"));
    failed.iter().for_each(|name| println!("FAILED {name}"));
    println!("{passed} passed, {} failed, {} skipped", failed.len(), skipped.len());
    if failed.is_empty() { Ok(()) } else { Err(String::new()) }
}

/// Checks the published crates with the compiler that `RUSTC_MSRV` names; false if it names none.
fn msrv() -> Result<bool, String> {
    let Some(rustc) = std::env::var_os("RUSTC_MSRV") else { return Ok(false) };
    shell::heading("oldest supported compiler");
    let mut cargo = shell::cargo();
    cargo.args(["check", "-p", "esatto"]).env("RUSTC", rustc).env("CARGO_TARGET_DIR", shell::target_dir().join("msrv"));
    shell::run(&mut cargo).map(|()| true)
}
