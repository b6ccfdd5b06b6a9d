//! Running daemons, whoever installed them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::check::Check;
use crate::service_connection::name_of;

/// Names of the daemons, and the commands of `esatto` that stand in for them.
const DAEMONS: [(&str, &str); 3] = [("traced", "traced"), ("traced_probes", "probes"), ("traced_relay", "relay")];
/// Daemons that are listed.
const LISTED: usize = 20;

pub(super) fn checks() -> Vec<Check> {
    let mut found = running(Path::new("/proc"));
    if found.is_empty() {
        return vec![Check::note("daemons", "no traced, traced_probes or traced_relay runs")];
    }
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    let mut checks: Vec<Check> = found.iter().map(|daemon| Check::ready("daemon", daemon.to_string())).collect();
    if more > 0 {
        checks.push(Check::note("daemons", format!("{more} more daemons run")));
    }
    checks
}

#[derive(Debug, PartialEq, Eq)]
struct Daemon {
    name: &'static str,
    pid: u32,
    uid: u32,
    /// The program, if this user may know it.
    program: Option<PathBuf>,
}

impl core::fmt::Display for Daemon {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let user = name_of("/etc/passwd", self.uid).unwrap_or_else(|| format!("uid {}", self.uid));
        write!(f, "{} runs with pid {} as {user}", self.name, self.pid)?;
        match &self.program {
            Some(program) => write!(f, ": {}", program.display()),
            None => Ok(()),
        }
    }
}

/// Returns the daemons in a folder such as `/proc`, by pid.
fn running(proc: &Path) -> Vec<Daemon> {
    let folders = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut found: Vec<Daemon> = folders
        .filter_map(|folder| {
            let pid = folder.file_name().to_str()?.parse().ok()?;
            let path = folder.path();
            let name = daemon_of(&fs::read(path.join("cmdline")).ok()?)?;
            let uid = fs::metadata(&path).ok()?.uid();
            Some(Daemon { name, pid, uid, program: fs::read_link(path.join("exe")).ok() })
        })
        .collect();
    found.sort_by_key(|daemon| daemon.pid);
    found
}

/// Returns the daemon with this command line, whose arguments end with a NUL each.
fn daemon_of(command: &[u8]) -> Option<&'static str> {
    let mut args = command.split(|&byte| byte == 0);
    let program = Path::new(OsStr::from_bytes(args.next()?)).file_name()?.to_str()?;
    let first = args.next().unwrap_or_default();
    let is_it = |(daemon, command): &&(&str, &str)| match program {
        "esatto" => first == command.as_bytes(),
        "tracebox" => first == daemon.as_bytes(),
        program => program == *daemon,
    };
    DAEMONS.iter().find(is_it).map(|(daemon, _)| *daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_are_known_by_their_command_line() {
        assert_eq!(daemon_of(b"/usr/bin/traced\0--background\0"), Some("traced"));
        assert_eq!(daemon_of(b"esatto\0probes\0"), Some("traced_probes"));
        assert_eq!(daemon_of(b"./tracebox\0traced_relay\0"), Some("traced_relay"));
        for other in [&b"esatto\0record\0"[..], b"vim\0traced\0", b"", b"\0", b"/\0"] {
            assert_eq!(daemon_of(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
