//! Calls of functions that the program has passed.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function of the program and catches its panic, so that the thread of this crate
/// continues. The panic hook has already reported the panic.
pub(crate) fn shielded(function: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(function));
}
