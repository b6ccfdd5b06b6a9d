//! A network of one test: loopback and nothing else. Fixed ports are free there.

use esatto_tests::Skip;
use std::path::Path;
use std::process::Command;

/// Returns a command that runs `program` there.
pub(crate) fn command(program: &Path) -> Result<Command, Skip> {
    let mut probe = unshare();
    let probe = probe.arg("true").output();
    let fine = probe.as_ref().is_ok_and(|output| output.status.success());
    if !fine {
        let why = probe.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        return Err(Skip::outside_ci(format!("no network namespaces: {}", why.trim())));
    }
    let mut command = unshare();
    command.arg(program);
    Ok(command)
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command
}
