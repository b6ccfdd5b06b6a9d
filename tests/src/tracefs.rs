//! The kernel's tracefs.

use crate::Skip;
use std::path::Path;
use std::process::Command;

/// Makes sure that tracefs is mounted and may be written; it stays mounted.
///
/// # Errors
///
/// It cannot be mounted.
pub fn mount_tracefs() -> Result<(), Skip> {
    const MOUNT_POINT: &str = "/sys/kernel/tracing";
    let control = Path::new(MOUNT_POINT).join("tracing_on");
    let usable = || std::fs::OpenOptions::new().write(true).open(&control).is_ok();
    if usable() {
        return Ok(());
    }
    let output = Command::new("mount")
        .args(["-t", "tracefs", "tracefs", MOUNT_POINT])
        .output()
        .map_err(|error| Skip(format!("no tracefs: mount: {error}")))?;
    if usable() { Ok(()) } else { Err(Skip(format!("no tracefs: {}", String::from_utf8_lossy(&output.stderr).trim()))) }
}
