//! Calls of functions that the program has passed.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function of the program on a thread of this crate, which outlives its panics: the panic hook has told of them.
pub(crate) fn shielded(function: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(function));
}
