//! Files in memory and their seals, by way of the C library, which std links anyway: the part of `rustix` that has them takes longer to compile than
//! this crate.

use core::ffi::{CStr, c_int, c_long};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};

use linux_raw_sys::general::{__NR_memfd_create, F_ADD_SEALS, F_GET_SEALS, MFD_ALLOW_SEALING, MFD_CLOEXEC};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
}

/// An empty file that can be sealed; close-on-exec.
pub(crate) fn create(name: &CStr) -> Result<File> {
    // Not by the function of that name: C libraries of 2018 do not have it.
    // SAFETY: `memfd_create` takes a string that ends with a zero, which it copies, and an `unsigned int`.
    let fd = unsafe { syscall(__NR_memfd_create as c_long, name.as_ptr(), MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor, which nobody else knows of.
    Ok(unsafe { File::from_raw_fd(fd as c_int) })
}

/// The seals of a file (`F_SEAL_*`).
pub(crate) fn seals(fd: BorrowedFd<'_>) -> Result<u32> {
    // SAFETY: the descriptor is open, as it is borrowed; the command takes no argument.
    let seals = unsafe { fcntl(fd.as_raw_fd(), F_GET_SEALS as c_int) };
    if seals < 0 { Err(Error::last_os_error()) } else { Ok(seals as u32) }
}

/// Adds to the seals of a file.
pub(crate) fn add_seals(fd: BorrowedFd<'_>, seals: u32) -> Result<()> {
    // SAFETY: the descriptor is open, as it is borrowed; the command takes an `int`.
    let result = unsafe { fcntl(fd.as_raw_fd(), F_ADD_SEALS as c_int, seals as c_int) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
