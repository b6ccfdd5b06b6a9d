//! Ctrl-C and SIGTERM as a descriptor to poll.
//!
//! The first signal requests an orderly end. A second one kills the program, as it would any other
//! (`docs/spec/cli.md` §9).

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// Request of the user, or of the system, to end.
#[derive(Debug)]
pub(crate) struct StopSignal {
    pipe: UnixStream,
    received: bool,
}

impl StopSignal {
    /// Handles SIGINT and SIGTERM for the rest of the process's life.
    pub(crate) fn install() -> io::Result<Self> {
        let (pipe, write_end) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it, so the second one
            // kills.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&second))?;
            signal_hook::flag::register(signal, Arc::clone(&second))?;
            signal_hook::low_level::pipe::register(signal, write_end.try_clone()?)?;
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
