//! Ids of threads (`docs/spec/c-abi.md` §13).

use crate::panic_guard::guard;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[unsafe(no_mangle)]
extern "C" fn PerfettoGetThreadIdImpl() -> core::ffi::c_int {
    guard(|| esatto::raw::tid() as core::ffi::c_int)
}
