//! Threads (`docs/spec/c-abi.md` §13).

use crate::guard::guard;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[unsafe(no_mangle)]
extern "C" fn PerfettoGetThreadIdImpl() -> core::ffi::c_int {
    guard(|| esatto::raw::tid() as core::ffi::c_int)
}
