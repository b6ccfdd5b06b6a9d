//! The SDK on other systems than this one: it has to compile there, and a static program has to run
//! here.

use std::process::Command;

use crate::test::{Skips, Tally};
use crate::{peers, shell};

/// Where it has to compile, with everything on Linux and Android, and with the service in the
/// process elsewhere.
const TARGETS: &[&str] = &[
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "aarch64-linux-android",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-gnu",
];

/// This system, built like another one.
const PORTABLE: &str = "portable";

/// Where one runs that needs nothing of this machine but its kernel.
const STATIC: &str = "x86_64-unknown-linux-musl";

/// An example that records with the service in the process, and prints the trace.
const EXAMPLE: &str = "annotations";

/// Checks each target of `ESATTO_PLATFORMS` (words; all, if it is not set) and runs the static
/// program.
///
/// The standard library is compiled along, half a minute of one CPU for each; its sources come with
/// the compiler.
///
/// Skipped, but in CI, where the compiler cannot be installed.
///
/// # Errors
///
/// That cannot be noted, or `ESATTO_PLATFORMS` names something else.
pub(crate) fn run(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    let installed = peers::run("install", &["platforms".to_owned()]);
    let missing = installed.is_err();
    let installed = installed.or_else(|error| skips.tolerate("platforms", error));
    tally.check("a compiler with the sources of its library", installed);
    if missing {
        return Ok(());
    }
    let chosen = std::env::var("ESATTO_PLATFORMS").unwrap_or_default();
    let known = |name: &str| TARGETS.contains(&name) || name == PORTABLE || name == STATIC;
    if let Some(unknown) = chosen.split_whitespace().find(|name| !known(name)) {
        return Err(format!("ESATTO_PLATFORMS: '{unknown}' is none of {TARGETS:?}, {PORTABLE} and {STATIC}"));
    }
    let is_chosen = |target: &str| chosen.is_empty() || chosen.split_whitespace().any(|one| one == target);
    for target in TARGETS.iter().filter(|target| is_chosen(target)) {
        let mut check = cargo("check", target, "panic_unwind")?;
        check.args(["-p", "esatto", "-p", "esatto-console"]);
        tally.check(&format!("compiles for {target}"), shell::run(&mut check));
    }
    // The same code on this system, where it can be tested: what differs between systems is one
    // folder.
    if is_chosen(PORTABLE) {
        let mut test = shell::cargo();
        test.args(["test", "-p", "esatto", "--test", "in_process", "--test", "data_sources"]);
        test.env("RUSTFLAGS", "--cfg esatto_portable").env("CARGO_TARGET_DIR", shell::target_dir().join("portable"));
        tally.check("records without anything of Linux", shell::run(&mut test));
    }
    if is_chosen(STATIC) {
        tally.check("a static program records itself", static_program());
    }
    Ok(())
}

/// A command of cargo for `target`, with the installed compiler and the standard library out of its
/// sources.
fn cargo(command: &str, target: &str, panic: &str) -> Result<Command, String> {
    let folder = peers::folder()?.join("platforms");
    let mut cargo = shell::cargo();
    cargo.args([command, "--target", target, &format!("-Zbuild-std=std,{panic}")]);
    cargo.env("RUSTC", folder.join("rustc")).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_DIR", shell::target_dir().join("platforms"));
    // Among the tools is the one that makes import libraries for Windows.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder.join("bin")].into_iter().chain(std::env::split_paths(&path)));
    cargo.env("PATH", path.map_err(|error| format!("PATH: {error}"))?);
    Ok(cargo)
}

fn static_program() -> Result<(), String> {
    let linker = peers::folder()?.join("platforms/bin/zig-musl");
    let flags =
        format!("-Clinker={} -Clink-self-contained=no -Ctarget-feature=+crt-static -Cpanic=abort", linker.display());
    let mut build = cargo("build", STATIC, "panic_abort")?;
    build.args(["-p", "esatto", "--example", EXAMPLE]).env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS", flags);
    shell::run(&mut build)?;
    let program = shell::target_dir().join("platforms").join(STATIC).join("debug/examples").join(EXAMPLE);
    let file = std::fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    if file.windows(12).any(|bytes| bytes == b"ld-linux-x86" || bytes == b"/lib/ld-musl") {
        return Err(format!("{} is not static", program.display()));
    }
    // It writes a trace to where it is started.
    shell::run(Command::new(program).current_dir(shell::target_dir().join("platforms")))
}
