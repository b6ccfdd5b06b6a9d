//! `--background` (`docs/spec/cli.md` §1): serves without a terminal.
//!
//! Safe code cannot fork, so the program starts itself a second time. The second process serves.
//! The first one waits until the second is ready, prints its pid and ends. If the daemon cannot
//! start, the user gets the error; upstream's daemon stays silent.

use std::env;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// Environment variable that marks the second process.
const CHILD: &str = "ESATTO_IN_BACKGROUND";

/// Returns whether this process is the second one, which serves.
pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Starts the process that serves. Waits until it is ready, or has written to stderr why it cannot
/// be.
///
/// # Errors
///
/// If the process cannot be started.
pub(crate) fn start() -> io::Result<ExitCode> {
    let mut args = env::args_os();
    let name = args.next().unwrap_or_default();
    let mut command = Command::new(env::current_exe()?);
    command.arg0(name).args(args).env(CHILD, "1").current_dir("/");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut ready = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        // The stream ends when the child closes its stdout or ends.
        stdout.read_to_end(&mut ready)?;
    }
    if ready.is_empty() {
        child.wait()?;
        return Ok(ExitCode::FAILURE);
    }
    writeln!(io::stdout(), "{}", child.id())?;
    Ok(ExitCode::SUCCESS)
}

/// Detaches the process that serves: lets the first process end, and leaves the terminal.
pub fn detach() {
    if !is_child() {
        return;
    }
    let detached = leave_terminal();
    if let Err(e) = detached {
        log::warn!("cannot leave the terminal: {e}");
    }
}

fn leave_terminal() -> io::Result<()> {
    // `setsid` fails only for the leader of a process group; a child is none.
    rustix::process::setsid()?;
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::io::write(rustix::stdio::stdout(), b"1")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
