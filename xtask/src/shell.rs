//! Running other programs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().expect("xtask lies in the workspace").to_path_buf()
}

/// The folder of build outputs: what `cargo` itself would take.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The `cargo` that runs this program, in the root folder.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    // Set for xtask by `cargo run`; a build that sees them would start from the beginning.
    for name in std::env::vars_os().map(|(name, _)| name) {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST") || text == "CARGO_CRATE_NAME" {
            command.env_remove(&name);
        }
    }
    command
}

/// True in CI, where a check may not be skipped if its peer could be installed.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// One line that can be found again in a long log, and tells when it was reached.
pub(crate) fn heading(what: &str) {
    static START: OnceLock<Instant> = OnceLock::new();
    let seconds = START.get_or_init(Instant::now).elapsed().as_secs();
    println!("\n==== {what} (after {seconds} s)");
}

/// A command as one would type it.
pub(crate) fn display(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or_else(|| command.get_program()).to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

/// Runs `command` to its end.
///
/// # Errors
///
/// It cannot be started or it ends with another status than 0.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot start {}: {error}", display(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", display(command))) }
}

/// Runs `command` and returns its stdout.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", display(command)))?;
    if !output.status.success() {
        return Err(format!("{}: {}", display(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
