//! Names of processes of this machine.

/// Returns the name of a process's program, as it was called.
pub(crate) fn name_of(pid: i32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = line.split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
    let name = String::from_utf8_lossy(name).into_owned();
    Some(name.rsplit('/').next().unwrap_or(&name).to_owned())
}
