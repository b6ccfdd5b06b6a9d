//! Functions to call when the process ends by `exit`, including the end of `main`.

use core::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

static FUNCTIONS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

fn functions() -> MutexGuard<'static, Vec<fn()>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the list while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    functions()
}

/// Registers a function that is called once, on the thread that calls `exit`, whose thread-locals
/// may be gone. The last one registered is called first.
pub(crate) fn at_exit(function: fn()) {
    let mut functions = functions();
    if functions.is_empty() {
        // SAFETY: `run` has the type that C expects, is there as long as the code of this crate is,
        // and does not unwind. Fails only without memory; then nothing is called.
        let _ = unsafe { atexit(run) };
    }
    if !functions.iter().any(|&known| core::ptr::fn_addr_eq(known, function)) {
        functions.push(function);
    }
}

/// Registers a function that is called only at the end of the process, before those that were
/// registered earlier. It must not unwind.
pub(crate) fn only_at_exit(function: extern "C" fn()) {
    // SAFETY: the function has the type that C expects, and is there as long as the code of this
    // crate is. Fails only without memory; then it is not called.
    let _ = unsafe { atexit(function) };
}

/// Calls the functions now. They are called again when the process exits.
pub(crate) fn run_all() {
    run();
}

extern "C" fn run() {
    // The thread that exits may hold the lock.
    let functions = FUNCTIONS.try_lock().map(|functions| functions.clone()).unwrap_or_default();
    for function in functions.into_iter().rev() {
        let _ = catch_unwind(function);
    }
}
