//! Lines on standard error: the time, the program and the text.

use core::fmt;
use std::io::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use esatto_trace::escape::Lines;

/// Writes a line to standard error. Ignores failures: the terminal may be gone, and the trace must
/// still be written.
macro_rules! log_line {
    ($($arg:tt)*) => { $crate::perfetto::log_line::write(format_args!($($arg)*)) };
}
pub(crate) use log_line;

/// Writes a line. Like those of Perfetto it begins with the last three digits of the seconds, and
/// the milliseconds.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (now.as_secs() % 1000, now.subsec_millis());
    // Names and errors come from elsewhere, and must not act on the terminal.
    let line = format!("[{seconds:03}.{millis:03}] perfetto: {}\n", Lines(text));
    let _ = io::stderr().write_all(line.as_bytes());
}
