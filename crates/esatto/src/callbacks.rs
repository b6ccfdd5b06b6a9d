//! Calls of functions that the program has passed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use esatto_instances::ThreadGate as _;

use crate::control_thread;
use crate::trace_point_gate::Gate;

/// Calls a function of the program and catches its panic, so that the thread of this crate
/// continues. The panic hook has already reported the panic.
pub(crate) fn shielded(function: impl FnOnce()) {
    let _ = caught(function);
}

/// As [`shielded`], with the result of the function; `None` if it panics.
///
/// The control thread is closed to trace points, but not in the functions of the program.
pub(crate) fn caught<R>(function: impl FnOnce() -> R) -> Option<R> {
    let caught = || catch_unwind(AssertUnwindSafe(function)).ok();
    if control_thread::is_current() { Gate::open_for(caught) } else { caught() }
}
