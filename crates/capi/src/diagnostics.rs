//! Messages of the library on stderr, and the end of programs that break the contract.

use core::fmt;
use std::io::Write;

use esatto::raw::Uncancelled;

/// Writes a message to stderr in one write.
///
/// It takes no lock, because the child of a fork might find that lock taken. It does not panic if
/// the write fails.
pub(crate) fn say(message: impl fmt::Display) {
    let _uncancelled = Uncancelled::begin();
    #[cfg(unix)]
    // SAFETY: the descriptor stays open, because the file is never dropped. If the program has
    // closed it, the line may go to another file of the program, as with every other way to write
    // to stderr.
    let mut stderr = core::mem::ManuallyDrop::new(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(2) });
    #[cfg(not(unix))]
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(format!("perfetto_c: {message}\n").as_bytes());
}

/// Ends the process, because the program did something that the contract forbids.
pub(crate) fn die(message: impl fmt::Display) -> ! {
    say(message);
    std::process::abort();
}
