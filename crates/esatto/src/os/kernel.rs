//! Calls of the Linux kernel through the C library, which std links anyway. `rustix` offers all of
//! them, in features that take longer to compile than most of this project.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint};
use std::ffi::CString;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use linux_raw_sys::general as raw;

unsafe extern "C" {
    safe fn getuid() -> u32;
    safe fn geteuid() -> u32;
    fn syscall(number: c_long, ...) -> c_long;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    #[link_name = "eventfd"]
    safe fn make_eventfd(initial: c_uint, flags: c_int) -> c_int;
    safe fn inotify_init1(flags: c_int) -> c_int;
    fn inotify_add_watch(fd: c_int, path: *const c_char, mask: u32) -> c_int;
}

/// `struct timespec`. (Where `long` has 32 bits, the seconds of the symbol `clock_gettime` also
/// have 32, even if the headers declare 64.)
#[repr(C)]
struct Time {
    seconds: c_long,
    nanoseconds: c_long,
}

/// A clock of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClockId {
    Realtime = raw::CLOCK_REALTIME as isize,
    Monotonic = raw::CLOCK_MONOTONIC as isize,
    ThreadCPUTime = raw::CLOCK_THREAD_CPUTIME_ID as isize,
    MonotonicRaw = raw::CLOCK_MONOTONIC_RAW as isize,
    RealtimeCoarse = raw::CLOCK_REALTIME_COARSE as isize,
    MonotonicCoarse = raw::CLOCK_MONOTONIC_COARSE as isize,
    Boottime = raw::CLOCK_BOOTTIME as isize,
}

/// Returns nanoseconds. Costs as much as the clock: the C library asks the vDSO.
#[inline]
pub(crate) fn read_clock(clock: ClockId) -> u64 {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is a `timespec` that may be written. All these clocks are there since Linux
    // 2.6.39.
    unsafe { clock_gettime(clock as c_int, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Returns the number of the calling thread. Asks the kernel.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes nothing, touches nothing.
    unsafe { syscall(raw::__NR_gettid as c_long) as u32 }
}

/// Returns a random number; `None` before the kernel has gathered enough noise.
pub(crate) fn random() -> Option<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: the kernel writes at most the 8 bytes of `bytes`.
    let got = unsafe {
        syscall(raw::__NR_getrandom as c_long, bytes.as_mut_ptr(), bytes.len(), c_long::from(raw::GRND_NONBLOCK as i32))
    };
    (got == bytes.len() as c_long).then(|| u64::from_ne_bytes(bytes))
}

/// Makes an empty file in memory, whose name is only for those who look at the descriptors.
pub(crate) fn memory_file(name: &CStr) -> Result<File> {
    // SAFETY: the call takes a string that ends with a zero, which it copies, and flags.
    let fd = unsafe { syscall(raw::__NR_memfd_create as c_long, name.as_ptr(), c_long::from(raw::MFD_CLOEXEC)) };
    match c_int::try_from(fd) {
        // SAFETY: a new descriptor, which no other code knows.
        Ok(fd @ 0..) => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}

/// Returns the real user id.
pub(crate) fn uid() -> u32 {
    getuid()
}

/// Returns the effective user id, which counts when files are opened.
pub(crate) fn effective_uid() -> u32 {
    geteuid()
}

/// Makes a counter that is readable while it is not 0; close-on-exec and non-blocking.
pub(crate) fn eventfd() -> Result<OwnedFd> {
    own(make_eventfd(0, (raw::EFD_CLOEXEC | raw::EFD_NONBLOCK) as c_int))
}

/// Makes a descriptor that becomes readable when something appears in a directory or changes its
/// attributes; close-on-exec and non-blocking.
pub(crate) fn watch(directory: &Path) -> Result<OwnedFd> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let fd = own(inotify_init1((raw::IN_CLOEXEC | raw::IN_NONBLOCK) as c_int))?;
    add_watch(&fd, &path, raw::IN_CREATE | raw::IN_MOVED_TO | raw::IN_ATTRIB).map(|()| fd)
}

/// Takes ownership of the descriptor that a call has made.
fn own(result: c_int) -> Result<OwnedFd> {
    if result < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor, which no other code knows.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

fn add_watch(fd: &OwnedFd, path: &CStr, mask: u32) -> Result<()> {
    // SAFETY: the descriptor is open, and the path ends with a zero.
    let result = unsafe { inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), mask) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
