//! Lines for the user on standard error, and results on standard output.

use core::fmt;
use std::io::{self, Write as _};

/// Prints a line to standard error, like `eprintln!`. Ignores failures: the terminal may be gone
/// (SIGHUP), and the recording must still be written.
macro_rules! say {
    ($($arg:tt)*) => { $crate::console::line(format_args!($($arg)*)) };
}
pub(crate) use say;

/// Prints a line in one piece, so that output of recorded programs does not mix with it.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes a result to standard output. A closed pipe, as in `esatto info … | head`, is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
