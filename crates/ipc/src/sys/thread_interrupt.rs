//! [`interrupt`]: ends the wait of a thread in the kernel.

use core::ffi::{c_int, c_long};

use linux_raw_sys::general::{__NR_getpid, __NR_gettid, __NR_tgkill, SIGURG};

/// Thread of this process, for [`interrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(c_int);

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// Returns the calling thread.
#[expect(clippy::cast_possible_truncation, reason = "thread ids are positive and have at most 22 bits")]
#[must_use]
pub fn current_thread() -> ThreadId {
    // SAFETY: the declaration is that of the C library, which std links; the call takes no
    // arguments and cannot fail.
    let number = unsafe { syscall(c_long::from(__NR_gettid)) };
    ThreadId(number as c_int)
}

/// Sends `SIGURG` to a thread, which ends interruptible waits in the kernel if the signal has a
/// handler. Without a handler it is ignored. Nothing happens if the thread has ended.
pub fn interrupt(thread: ThreadId) {
    // SAFETY: as above; both calls touch no memory. If another thread of this process has the
    // number by now, that thread repeats a system call, which it must handle anyway.
    let _ = unsafe {
        let process = syscall(c_long::from(__NR_getpid));
        syscall(c_long::from(__NR_tgkill), process, c_long::from(thread.0), c_long::from(SIGURG as c_int))
    };
}
