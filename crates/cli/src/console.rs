//! Lines for the user on standard error, and results on standard output.

use core::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lines that are remembered at most.
const MAX_REMEMBERED: usize = 1000;

static IS_QUIET: AtomicBool = AtomicBool::new(false);
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);
/// The lines since [`remember_lines`].
static REMEMBERED: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Prints a line to standard error, like `eprintln!`. Ignores failures: the terminal may be gone
/// (SIGHUP), and the recording must still be written.
macro_rules! say {
    ($($arg:tt)*) => { $crate::console::line(format_args!($($arg)*)) };
}
pub(crate) use say;

/// Like [`say`], for a line that `--quiet` leaves out.
macro_rules! inform {
    ($($arg:tt)*) => { if !$crate::console::is_quiet() { $crate::console::line(format_args!($($arg)*)) } };
}
pub(crate) use inform;

/// Sets how many lines are printed.
pub(crate) fn set_voice(quiet: bool, verbose: bool) {
    IS_QUIET.store(quiet, Ordering::Relaxed);
    IS_VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Returns whether only errors and what a trace lacks are printed.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Returns whether the user wants more lines than usual.
pub(crate) fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// Remembers the lines that are printed from now on.
pub(crate) fn remember_lines() {
    *REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Returns the remembered lines.
pub(crate) fn remembered_lines() -> Vec<String> {
    REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

/// Prints a line in one piece, so that output of recorded programs does not mix with it.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let line = format!("{text}\n");
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(lines) = &mut *REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner) {
        if lines.len() < MAX_REMEMBERED {
            lines.push(line.trim_end().to_owned());
        }
    }
}

/// Writes a result to standard output. A closed pipe, as in `esatto info … | head`, is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
