//! Tells the user that the variable `ESATTO_TRACE` is set, but that the program does not read it.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Once;
use std::time::Duration;
use std::{env, process};

use crate::connection::{Command, Handle};
use crate::{diagnostics, os};

/// Names the file of the whole program's trace, or switches off the file that the program has
/// chosen.
pub(super) const FILE_VARIABLE: &str = "ESATTO_TRACE";

/// How long the program may take to read the variable.
const PATIENCE: Duration = Duration::from_secs(1);

static IS_READ: AtomicBool = AtomicBool::new(false);

/// The process that tells.
static WATCHER: AtomicU32 = AtomicU32::new(0);

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
pub(super) fn watch(control: &Handle) {
    static WATCHED: Once = Once::new();
    if IS_READ.load(Ordering::Relaxed) || env::var_os(FILE_VARIABLE).is_none_or(|value| is_off(&value)) {
        return;
    }
    WATCHED.call_once(|| {
        WATCHER.store(process::id(), Ordering::Relaxed);
        os::exit::at_exit(tell);
        control.send(Command::With(Box::new(|control| control.call_after(PATIENCE, tell))));
    });
}

fn tell() {
    // A forked child may not take the locks of messages when it exits.
    if !IS_READ.load(Ordering::Relaxed) && WATCHER.load(Ordering::Relaxed) == process::id() {
        let remedy = "record it with `esatto record`, or, in Rust, call `file_from_env` on its `Tracing::builder()`";
        diagnostics::say_once(format!("{FILE_VARIABLE} is set, but this program has not read it: {remedy}"));
    }
}
