//! Lines for the user, on standard error.

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
