//! Locks of files, by which processes notice that they write the same one.

use std::fs::File;
use std::io;

/// Locks a file for this handle of it. The lock ends when the handle is closed, in this process and
/// in children that were forked with it.
///
/// # Errors
///
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if the file is locked, or another error if the file
/// system has no locks.
#[cfg(unix)]
pub(crate) fn lock(file: &File) -> io::Result<()> {
    use core::ffi::c_int;
    use std::os::fd::AsRawFd as _;

    unsafe extern "C" {
        fn flock(fd: c_int, operation: c_int) -> c_int;
    }
    const LOCK_EX: c_int = 2;
    const LOCK_NB: c_int = 4;
    // SAFETY: the descriptor is open, and the function takes no pointers.
    match unsafe { flock(file.as_raw_fd(), LOCK_EX | LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Fails: there are no such locks.
#[cfg(not(unix))]
pub(crate) fn lock(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
