//! Ctrl-C, SIGTERM and SIGHUP as a descriptor to poll.
//!
//! The first signal requests an orderly end. A second one kills the program, as it would any other
//! (`docs/spec/cli.md` §9), unless it comes at the same moment: `timeout(1)` sends its signal to
//! the program and to its group, which has the program, too. SIGHUP comes when the terminal goes
//! away, for instance when an ssh connection is lost.

use core::time::Duration;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// Time in which further signals are the same request. Nobody presses Ctrl-C twice so fast.
const SAME_REQUEST: Duration = Duration::from_millis(300);

/// Request of the user, or of the system, to end.
#[derive(Debug)]
pub(crate) struct StopSignal {
    pipe: UnixStream,
    received: bool,
}

impl StopSignal {
    /// Handles SIGINT, SIGTERM and SIGHUP for the rest of the process's life. SIGHUP stays ignored
    /// if the parent process ignores it, as `nohup` does. Handles SIGXFSZ, so that a write beyond
    /// the limit of the size of files fails as on a full disk.
    pub(crate) fn install() -> io::Result<Self> {
        let (pipe, write_end) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let second = Arc::new(AtomicBool::new(false));
        let (mut first, first_end) = UnixStream::pair()?;
        let hang_up = Some(SIGHUP).filter(|_| !is_ignored(SIGHUP));
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            // It kills if the flag is set.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&second))?;
            signal_hook::low_level::pipe::register(signal, write_end.try_clone()?)?;
            signal_hook::low_level::pipe::register(signal, first_end.try_clone()?)?;
        }
        // A thread of its own: the program may be waiting for something else then.
        std::thread::Builder::new().name("stop-signal".into()).spawn(move || {
            if first.read_exact(&mut [0]).is_ok() {
                std::thread::sleep(SAME_REQUEST);
                second.store(true, Ordering::Release);
            }
        })?;
        // A recorded command inherits that it is ignored, but no handler.
        if !is_ignored(SIGXFSZ) {
            signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        }
        Ok(Self { pipe, received: false })
    }

    /// Returns whether a signal has come.
    pub(crate) fn received(&mut self) -> bool {
        let mut byte = [0; 8];
        self.received |= matches!(self.pipe.read(&mut byte), Ok(n) if n > 0);
        self.received
    }
}

impl AsFd for StopSignal {
    /// Readable as long as a signal is unread.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Returns whether this process ignores a signal. It inherits this from its parent.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 << (signal - 1) != 0
}
