//! Threads (`docs/spec/c-abi.md` §13).

#[cfg(any(target_os = "linux", target_os = "android"))]
#[unsafe(no_mangle)]
extern "C" fn PerfettoGetThreadIdImpl() -> core::ffi::c_int {
    esatto::raw::tid() as core::ffi::c_int
}
