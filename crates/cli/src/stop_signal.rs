//! Ctrl-C and SIGTERM as something to poll.
//!
//! The first one asks for an orderly end; a second one kills, as for every other program (`docs/spec/cli.md` §9).

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// The wish of the user, or of the system, that the command ends.
#[derive(Debug)]
pub(crate) struct StopSignal {
    pipe: UnixStream,
    received: bool,
}

impl StopSignal {
    /// Takes over SIGINT and SIGTERM for the rest of the process's life.
    pub(crate) fn install() -> io::Result<Self> {
        let (pipe, write_end) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it, the second one dies of it.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&second))?;
            signal_hook::flag::register(signal, Arc::clone(&second))?;
            signal_hook::low_level::pipe::register(signal, write_end.try_clone()?)?;
        }
        Ok(Self { pipe, received: false })
    }

    /// Whether the signal has come; remembers it.
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
