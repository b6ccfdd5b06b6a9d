//! Cancellation of threads (`pthread_cancel`), which must not happen inside of the library.
//!
//! A cancelled thread ends at its next *cancellation point*: a function of the C library that may
//! block, such as `read` or `nanosleep`. glibc unwinds the stack from there. Rust code cannot let
//! that pass, and it would leave locks behind. So the few functions that reach a cancellation point
//! on a thread of the program postpone the cancellation until they return.

use core::marker::PhantomData;

/// Guard of the calling thread. While it lives, a request to cancel the thread stays pending.
///
/// Costs two calls of some nanoseconds, so it does not belong into the fast path of trace points.
#[derive(Debug)]
#[must_use = "the thread can be cancelled again when this is dropped"]
pub struct Uncancelled {
    before: state::State,
    /// Belongs to one thread.
    not_send: PhantomData<*const ()>,
}

impl Uncancelled {
    /// Postpones the cancellation of the calling thread.
    pub fn begin() -> Self {
        Self { before: state::disable(), not_send: PhantomData }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        state::restore(self.before);
    }
}

#[cfg(any(
    target_os = "linux",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly"
))]
mod state {
    use core::ffi::c_int;
    use core::ptr;

    pub(super) type State = c_int;

    /// `PTHREAD_CANCEL_DISABLE`.
    const DISABLE: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };

    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }

    pub(super) fn disable() -> State {
        // If the call failed, this would stay.
        let mut old = DISABLE;
        // SAFETY: a number of the system, and an integer that may be written.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut old) };
        old
    }

    pub(super) fn restore(state: State) {
        // SAFETY: a state that this thread has had, and nothing to write to.
        unsafe { pthread_setcancelstate(state, ptr::null_mut()) };
    }
}

/// Systems without cancellation, such as Android.
#[cfg(not(any(
    target_os = "linux",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly"
)))]
mod state {
    pub(super) type State = ();

    pub(super) const fn disable() -> State {}

    pub(super) const fn restore(_: State) {}
}
