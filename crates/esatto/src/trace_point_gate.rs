//! Gate of each thread to its trace points.

use core::cell::Cell;

use esatto_instances::thread_gate;

thread_gate! {
    /// Gate of the calling thread to its trace points. A thread closes it while it holds a lock
    /// that trace points take.
    pub(crate) struct Gate;
}

/// Guard of a thread whose gate is closed.
pub(crate) type Closed = esatto_instances::Closed<Gate>;

thread_local! {
    static IS_CONTROL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Notes that this is the control thread, which is closed but for functions of the program.
pub(crate) fn mark_control_thread() {
    IS_CONTROL_THREAD.set(true);
}

/// Returns whether this is the control thread.
pub(crate) fn is_control_thread() -> bool {
    IS_CONTROL_THREAD.get()
}
