//! Files in memory, their seals and mappings, by way of the C library, which std links anyway: the part of `rustix` that has them takes longer to compile than
//! this crate.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};

use linux_raw_sys::general::{
    __NR_memfd_create, F_ADD_SEALS, F_GET_SEALS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, MFD_ALLOW_SEALING, MFD_CLOEXEC,
    PROT_READ, PROT_WRITE,
};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    #[cfg(target_pointer_width = "64")]
    fn mmap(at: *mut c_void, size: usize, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
}

/// Maps the first `size` bytes of a file at an address of the kernel's choice, shared with whoever else does, to be read and written.
pub(crate) fn map(file: &File, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: a new mapping touches no memory of ours.
    unsafe { map_at(ptr::null_mut(), file.as_raw_fd(), size, MAP_SHARED) }
}

/// Maps a copy of the first `size` bytes of a file over what is mapped at `base`.
///
/// # Safety
///
/// `base` is a mapping of the same bytes of the same file, and `fd` that file. Nobody else uses it meanwhile.
pub(crate) unsafe fn map_copy_over(base: NonNull<u8>, fd: RawFd, size: usize) -> Result<()> {
    // SAFETY: the same bytes take the place of what is there.
    unsafe { map_at(base.as_ptr().cast(), fd, size, MAP_PRIVATE | MAP_FIXED) }.map(drop)
}

/// # Safety
///
/// `at` is null, or `flags` say what becomes of what is there, which is as its users like it.
unsafe fn map_at(at: *mut c_void, fd: RawFd, size: usize, flags: u32) -> Result<NonNull<u8>> {
    let (access, flags) = ((PROT_READ | PROT_WRITE) as c_int, flags as c_int);
    // SAFETY: the caller's promise.
    #[cfg(target_pointer_width = "64")]
    let address = unsafe { mmap(at, size, access, flags, fd, 0) };
    // SAFETY: as above. The offset of `mmap` has as many bits as the C library likes.
    #[cfg(target_pointer_width = "32")]
    let address = unsafe {
        let number = linux_raw_sys::general::__NR_mmap2 as c_long;
        syscall(number, at, size, access, flags, fd, 0 as c_long) as *mut c_void
    };
    // Errors are -1.
    NonNull::new(address.cast())
        .filter(|address| address.as_ptr() as usize != usize::MAX)
        .ok_or_else(Error::last_os_error)
}

/// Ends a mapping.
///
/// # Safety
///
/// `base` is a mapping of `size` bytes, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, size: usize) -> Result<()> {
    // SAFETY: as the caller grants.
    let result = unsafe { munmap(base.as_ptr().cast(), size) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
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
