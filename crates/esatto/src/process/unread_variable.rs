//! Tells the user that the variable `ESATTO_TRACE` is set, but that the program does not read it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::env;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use crate::{diagnostics, os};

/// Names the file of the whole program's trace, or switches off the file that the program has
/// chosen.
pub(super) const FILE_VARIABLE: &str = "ESATTO_TRACE";

const THREAD_NAME: &str = "esatto-variable";

/// How long the program may take to read the variable.
const PATIENCE: Duration = Duration::from_secs(1);

static IS_READ: AtomicBool = AtomicBool::new(false);

/// Notes that the program reads the variable.
#[cfg(feature = "in-process")]
pub(super) fn mark_read() {
    IS_READ.store(true, Ordering::Relaxed);
}

/// Returns whether a value of the variable asks for no file.
pub(super) fn is_off(value: &std::ffi::OsStr) -> bool {
    value.is_empty() || value == "off" || value == "0"
}

/// Tells the user in a second, or at the end of the program, if the variable is set and nothing has
/// read it by then.
pub(super) fn watch() {
    static WATCHED: Once = Once::new();
    if IS_READ.load(Ordering::Relaxed) || env::var_os(FILE_VARIABLE).is_none_or(|value| is_off(&value)) {
        return;
    }
    WATCHED.call_once(|| {
        os::exit::at_exit(tell);
        let run = || {
            os::block_signals();
            thread::sleep(PATIENCE);
            tell();
        };
        // Without a thread, the user learns it at the end.
        let _ = os::spawn(THREAD_NAME, Box::new(run));
    });
}

fn tell() {
    if !IS_READ.load(Ordering::Relaxed) {
        let remedy = "call `file_from_env` on its `Tracing::builder()`, or record it with `esatto record`";
        let line = format!("{FILE_VARIABLE} is set, but this program does not read it and writes no file: {remedy}");
        diagnostics::say_once(line);
    }
}
