//! `--background` and `--background-wait` (`docs/spec/cli.md` §10).
//!
//! Safe code cannot fork, so the command starts itself a second time. The second process reads the
//! config and opens the output while it still has the terminal. Then it leaves the terminal, and
//! tells the first one by a pipe.

use core::time::Duration;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::log_line::log_line;
use super::options::Background;

/// Environment variable of the second process, with the number of its end of the pipe.
const PIPE: &str = "ESATTO_PERFETTO_BACKGROUND";
/// First byte in the pipe: the second process has left the terminal.
const DETACHED: u8 = b'd';
/// Longest time until all data sources have started.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const TIMED_OUT: u8 = 2;

/// The second process's knowledge of the first.
#[derive(Debug)]
pub(crate) struct Parent(File);

impl Parent {
    /// Returns the first process if this is the second one.
    pub(crate) fn of_this_process() -> Option<Self> {
        let number = std::env::var(PIPE).ok()?.parse().ok()?;
        esatto_ipc::sys::inherited(number).ok().map(|fd| Self(fd.into()))
    }

    /// Leaves the terminal and the current folder, and tells the first process. Returns the pipe,
    /// in which the first process may expect another byte.
    pub(crate) fn leave(mut self) -> io::Result<File> {
        take_name();
        // Fails only for the leader of a process group; a process that was just started is none.
        rustix::process::setsid()?;
        rustix::process::chdir("/")?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        self.0.write_all(&[DETACHED])?;
        Ok(self.0)
    }
}

/// Gives this process the name by which it was called, so that `killall perfetto` finds it. It has
/// been started by the path of the program's file, which has another name.
fn take_name() {
    let name = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    // Only for people who look at the list of processes.
    let _ = CString::new(name.as_bytes()).map(|name| rustix::thread::set_name(&name));
}

/// Starts the second process. Waits until it has left the terminal, or has failed before that, and
/// if wanted until all data sources have started.
pub(crate) fn start(mode: Background) -> ExitCode {
    let started = start_child();
    let (child, pipe) = match started {
        Ok(started) => started,
        Err(error) => {
            log_line!("Could not start a background process: {error}");
            return ExitCode::FAILURE;
        }
    };
    wait(mode, child, pipe)
}

fn start_child() -> io::Result<(Child, File)> {
    let (read_end, write_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Without close-on-exec, so that the second process inherits it.
    let inherited = rustix::io::dup(&write_end)?;
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let mut command = Command::new(std::env::current_exe()?);
    let child = command.arg0(name).args(args).env(PIPE, inherited.as_raw_fd().to_string()).spawn()?;
    Ok((child, read_end.into()))
}

fn wait(mode: Background, mut child: Child, mut pipe: File) -> ExitCode {
    let mut byte = [0];
    if !matches!(pipe.read(&mut byte), Ok(1)) {
        // It has written the reason to stderr.
        let code = child.wait().ok().and_then(|status| status.code());
        return code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    // Scripts read the pid. If stdout is closed, nobody wants it.
    let _ = writeln!(io::stdout(), "{}", child.id());
    if mode == Background::AtOnce {
        return ExitCode::SUCCESS;
    }
    match is_readable(&pipe, START_TIMEOUT) {
        Ok(true) => {}
        Ok(false) => {
            log_line!("Timeout waiting for all data sources to start");
            return TIMED_OUT.into();
        }
        Err(error) => {
            log_line!("Could not wait for the background process: {error}");
            return ExitCode::FAILURE;
        }
    }
    match pipe.read(&mut byte) {
        Ok(1) if byte == [0] => ExitCode::SUCCESS,
        Ok(1) => {
            log_line!("Background process failed; without -D it says why");
            ExitCode::FAILURE
        }
        _ => {
            let status = child.wait().map(ExitStatusExt::into_raw).unwrap_or_default();
            log_line!("Background process didn't report anything, WaitStatus={status}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until a byte or the end can be read. Returns false after `timeout`.
fn is_readable(pipe: &File, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
