//! The main thread, whose thread-locals are destroyed before the last functions of a program run.

/// Returns whether the calling thread is the main thread of its process. False where this is not
/// known.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
pub fn is_main_thread() -> bool {
    use core::ffi::c_long;

    use linux_raw_sys::general::{__NR_getpid, __NR_gettid};

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    // SAFETY: neither call takes an argument or touches memory.
    let [tid, pid] = [__NR_gettid, __NR_getpid].map(|number| unsafe { syscall(number as c_long) });
    tid == pid
}

/// Returns whether the calling thread is the main thread of its process. False where this is not
/// known.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(esatto_loom))))]
pub fn is_main_thread() -> bool {
    false
}
