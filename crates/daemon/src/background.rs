//! `--background` (`docs/spec/cli.md` §1): the service goes on without its terminal.
//!
//! Forking is nothing for safe code, so the program starts itself once more. The second one serves; the first waits
//! until it does, prints its pid and ends. Unlike with upstream, who asks for a daemon that cannot start is told so.

use std::env;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// Tells the second process that it is the second.
const CHILD: &str = "ESATTO_IN_BACKGROUND";

/// Whether this process is the one that serves.
pub(crate) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Starts the process that serves, and waits until it has made its sockets or has said on stderr why it cannot.
pub(crate) fn start() -> io::Result<ExitCode> {
    let mut args = env::args_os();
    let name = args.next().unwrap_or_default();
    let mut command = Command::new(env::current_exe()?);
    command.arg0(name).args(args).env(CHILD, "1").current_dir("/");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut ready = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        // It ends when the child lets go of it, one way or the other.
        stdout.read_to_end(&mut ready)?;
    }
    if ready.is_empty() {
        child.wait()?;
        return Ok(ExitCode::FAILURE);
    }
    writeln!(io::stdout(), "{}", child.id())?;
    Ok(ExitCode::SUCCESS)
}

/// In the process that serves, and does so now: lets the first one go, and the terminal with it.
pub(crate) fn detach() {
    if !is_child() {
        return;
    }
    let detached = leave_terminal();
    if let Err(e) = detached {
        log::warn!("cannot leave the terminal: {e}");
    }
}

fn leave_terminal() -> io::Result<()> {
    // Only the leader of a process group cannot do this, and a child is none.
    rustix::process::setsid()?;
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::io::write(rustix::stdio::stdout(), b"1")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
