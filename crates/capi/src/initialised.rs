//! The check that a program has initialised a backend before it uses the library
//! (`docs/spec/c-abi.md` §4).

use core::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostics;

/// True once this process, or the process that forked it, has initialised a backend.
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_initialised() {
    IS_INITIALISED.store(true, Ordering::Relaxed);
}

/// Ends the process unless a backend was initialised.
///
/// The child of a fork has no backend any more and records nothing. That is no reason to end it.
pub(crate) fn require_initialised(what: &str) {
    if !IS_INITIALISED.load(Ordering::Relaxed) {
        diagnostics::die(format_args!(
            "{what} needs PerfettoProducerInProcessInit or PerfettoProducerSystemInit before"
        ));
    }
}
