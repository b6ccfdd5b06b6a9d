//! What is to be done when the process ends by `exit`, also by the end of `main`.

use core::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::OnceLock;

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

static FUNCTION: OnceLock<fn()> = OnceLock::new();

/// Has `function` called on the thread that calls `exit`, whose thread-locals may be gone. The first in a process stays.
pub(crate) fn at_exit(function: fn()) {
    if FUNCTION.set(function).is_ok() {
        // SAFETY: `run` has the type that C expects, is there as long as the code of this crate is, and does not unwind. Fails only without
        // memory; then nothing is called.
        let _ = unsafe { atexit(run) };
    }
}

extern "C" fn run() {
    if let Some(function) = FUNCTION.get() {
        let _ = catch_unwind(function);
    }
}
