//! Python's lock in callbacks of C.

use pyo3::ffi;
use pyo3::prelude::*;

/// Takes Python's lock for a function. Returns `None` if Python has ended.
///
/// PyO3's `Python::attach` remembers if this thread has the lock. It does not see that a package
/// such as pyarrow, below a call of ours, gives the lock away before it calls back. So callbacks
/// ask Python itself.
#[expect(unsafe_code, reason = "PyO3 has no safe form of it")]
pub(crate) fn with_lock<T>(function: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    /// Restores the former state, also after a panic.
    struct Guard(ffi::PyGILState_STATE);

    impl Drop for Guard {
        fn drop(&mut self) {
            // SAFETY: the state comes from `PyGILState_Ensure` on this thread, and the guards of a
            // thread are dropped in the reverse order.
            unsafe { ffi::PyGILState_Release(self.0) }
        }
    }

    // SAFETY: the function may always be called.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: Python runs. The thread may have the lock or not.
    let _guard = Guard(unsafe { ffi::PyGILState_Ensure() });
    // SAFETY: the guard has the lock, and outlives the token.
    Some(function(unsafe { Python::assume_attached() }))
}
