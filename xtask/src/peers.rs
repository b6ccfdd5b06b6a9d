//! The real Perfetto: installing it and using its tools.

use crate::shell;
use std::path::PathBuf;
use std::process::Command;

/// Parts that the tests need.
const DEFAULT: &[&str] = &[
    "official",
    "ui",
    "protoc",
    "valgrind",
    "systemd",
    "openssh",
    "cmake",
    "debian",
    "nspawn",
    "packaging",
    "browser",
    "producer",
];

/// Folder of everything that the scripts install.
///
/// # Errors
///
/// `PEERS_DIR` and `HOME` are not set.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PEERS_DIR")
        .or_else(|| Some(set("HOME")?.join(".cache/perfetto-peers")))
        .ok_or_else(|| "neither PEERS_DIR nor HOME is set".to_owned())
}

/// Runs one of the scripts of `xtask/peers`.
///
/// `install` without a part installs all that tests need.
pub(crate) fn run(script: &str, args: &[String]) -> Result<(), String> {
    let path = shell::root().join("xtask/peers").join(script);
    let mut command = Command::new(path);
    command.args(args);
    let no_part = args.iter().all(|arg| arg == "--force");
    if script == "install" && no_part {
        command.args(DEFAULT);
    }
    if script == "install" {
        return shell::run(&mut command);
    }
    // A tool's own messages and exit status are the answer.
    let status = command.status().map_err(|error| format!("cannot start {script}: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => std::process::exit(code),
        None => Err(format!("{script}: {status}")),
    }
}
