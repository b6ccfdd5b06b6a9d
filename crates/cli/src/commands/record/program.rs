//! [`Program`]: the recorded command.

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::TICK;
use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::private_service::PrivateService;
use crate::stop_signal::StopSignal;

/// Time that a command may take to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in milliseconds for which a program waits until the session has found it. Without it, the
/// recording would miss the program's first events, or all of them. On an idle machine this takes
/// some milliseconds.
const WAIT: (&str, &str) = ("ESATTO_WAIT_MS", "5000");
/// The session runs already, so a program that offers nothing that it wants need not wait.
const WAIT_FOR: (&str, &str) = ("ESATTO_WAIT_FOR", "service");

/// Exit status of a command whose own one is unknown.
const EXIT_FAILURE: u8 = 1;

/// Returns a folder of PATH that this user may not look into, if no other one has the command. The
/// system then reports a missing permission.
fn closed_folder(command: &OsStr) -> Option<PathBuf> {
    if command.as_encoded_bytes().contains(&b'/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let mut closed = None;
    for folder in std::env::split_paths(&path) {
        match folder.join(command).metadata() {
            Ok(_) => return None,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => closed = closed.or(Some(folder)),
            Err(_) => {}
        }
    }
    closed
}

/// The recorded command.
#[derive(Debug)]
pub(in crate::commands) struct Program {
    child: Child,
    /// Readable when the command has ended; `None` on kernels without such descriptors.
    ending: Option<OwnedFd>,
    /// The status of a command that has ended. It is unknown if the parent of this process ignores
    /// SIGCHLD.
    status: Option<io::Result<ExitStatus>>,
}

impl Program {
    /// Starts the command. If `piped`, standard output is for the trace, so the command's output
    /// goes to standard error.
    pub(super) fn start(command: &[OsString], service: &PrivateService, piped: bool) -> Result<Self, Failure> {
        let (name, args) =
            command.split_first().ok_or_else(|| Failure::new("cannot start a command", "no command is given"))?;
        let mut command = Command::new(name);
        service.announce_to(command.args(args));
        command.env(WAIT_FOR.0, WAIT_FOR.1);
        if std::env::var_os(WAIT.0).is_none() {
            command.env(WAIT.0, WAIT.1);
        }
        if piped {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.attempt(|| "cannot redirect the output of the command".to_owned())?);
        }
        let child = command.spawn().map_err(|e| {
            let what = format!("cannot start {}", name.to_string_lossy());
            match (e.kind(), closed_folder(name)) {
                (io::ErrorKind::PermissionDenied, Some(folder)) => {
                    let why = format!("not found; this user may not look into {}, which is in PATH", folder.display());
                    Failure::new(what, why).hint("check the spelling and PATH")
                }
                (io::ErrorKind::NotFound, _) => Failure::new(what, &e).hint("check the spelling and PATH"),
                _ => Failure::new(what, &e),
            }
        })?;
        let ending = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(Self { child, ending, status: None })
    }

    pub(super) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().transpose();
        }
        self.status.is_some()
    }

    pub(super) fn ending(&self) -> Option<BorrowedFd<'_>> {
        self.ending.as_ref().map(|fd| fd.as_fd())
    }

    /// Waits until the command has ended, the user stops it, or the time is over.
    pub(super) fn wait(&mut self, stop: &mut StopSignal, time: Option<Duration>) {
        let deadline = time.map(|time| Instant::now() + time);
        while !(self.has_ended() || stop.received() || deadline.is_some_and(|deadline| Instant::now() >= deadline)) {
            std::thread::sleep(TICK);
        }
    }

    /// Returns the exit status. If the command still runs because the time is over, asks it to end.
    pub(super) fn end(mut self) -> io::Result<ExitStatus> {
        if !self.has_ended() {
            say!("The recording is over. Asking the command to end ...");
            // It may have ended this very moment.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let deadline = Instant::now() + TERM_TIMEOUT;
            while !self.has_ended() && Instant::now() < deadline {
                std::thread::sleep(TICK / 10);
            }
            if !self.has_ended() {
                say!("The command does not end. Killing it.");
                let _ = self.child.kill();
            }
        }
        let status = self.status.unwrap_or_else(|| self.child.wait());
        status.inspect_err(|why| say!("The exit status of the command is unknown: {why}"))
    }
}

pub(super) fn has_failed(status: Option<&io::Result<ExitStatus>>) -> bool {
    status.is_some_and(|status| !status.as_ref().is_ok_and(ExitStatus::success))
}

/// Returns the command's own exit status, or 128 plus the number of the signal that ended it, as
/// shells do.
pub(super) fn exit_code(status: &io::Result<ExitStatus>) -> u8 {
    let Ok(status) = status else { return EXIT_FAILURE };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILURE)
}

/// Returns a line about the signal that ended the command, if one did.
pub(super) fn ended_by_signal(status: &io::Result<ExitStatus>) -> Option<String> {
    let status = status.as_ref().ok()?;
    let signal = status.signal()?;
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal without a name");
    let dump = if status.core_dumped() { ", and the system has dumped its memory" } else { "" };
    Some(format!("The command was ended by signal {signal} ({name}){dump}. Its last events may be missing."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_as_128_and_its_number() {
        let killed = Ok(ExitStatus::from_raw(9));
        assert_eq!(exit_code(&killed), 137);
    }
}
