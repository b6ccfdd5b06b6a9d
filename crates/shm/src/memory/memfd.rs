//! System calls for files in memory, their seals and their mappings. They use the C library, which
//! std links anyway: the part of `rustix` that has them takes longer to compile than this crate.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};

use linux_raw_sys::general::{
    __NR_fstatfs, __NR_memfd_create, F_ADD_SEALS, F_GET_SEALS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, MFD_ALLOW_SEALING,
    MFD_CLOEXEC, PROT_READ, PROT_WRITE, statfs,
};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    #[cfg(target_pointer_width = "64")]
    fn mmap(at: *mut c_void, size: usize, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
    #[cfg(target_pointer_width = "64")]
    fn pread(fd: c_int, to: *mut c_void, size: usize, offset: i64) -> isize;
    #[cfg(target_pointer_width = "32")]
    fn pread64(fd: c_int, to: *mut c_void, size: usize, offset: i64) -> isize;
}

/// Maps the first `size` bytes of a file for reading and writing, shared with other processes, at
/// an address that the kernel chooses.
pub(crate) fn map(file: &File, size: usize) -> Result<NonNull<u8>> {
    // SAFETY: a new mapping changes no memory of this process.
    unsafe { map_at(ptr::null_mut(), file.as_raw_fd(), size, MAP_SHARED) }
}

/// Maps a copy of the first `size` bytes of a file over the mapping at `base`.
///
/// # Safety
///
/// `base` is a mapping of the same bytes of the same file, and `fd` is that file. No other thread
/// uses it meanwhile.
pub(crate) unsafe fn map_copy_over(base: NonNull<u8>, fd: RawFd, size: usize) -> Result<()> {
    // SAFETY: the same bytes replace the mapping.
    unsafe { map_at(base.as_ptr().cast(), fd, size, MAP_PRIVATE | MAP_FIXED) }.map(drop)
}

/// Maps zeroed memory over the mapping at `base`. Signal handlers may call it: it takes no lock and
/// allocates nothing.
///
/// # Safety
///
/// `base` is a mapping of `size` bytes, and no code relies on its content.
#[cfg(feature = "faults")]
pub(crate) unsafe fn map_zeros_over(base: *mut u8, size: usize) -> Result<()> {
    use linux_raw_sys::general::{MAP_ANONYMOUS, MAP_NORESERVE};
    // SAFETY: the caller's promise.
    unsafe { map_at(base.cast(), -1, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE) }.map(drop)
}

/// # Safety
///
/// `at` is null, or the users of the memory at `at` accept that it is replaced as `flags` say.
unsafe fn map_at(at: *mut c_void, fd: RawFd, size: usize, flags: u32) -> Result<NonNull<u8>> {
    let (access, flags) = ((PROT_READ | PROT_WRITE) as c_int, flags as c_int);
    // SAFETY: the caller's promise.
    #[cfg(target_pointer_width = "64")]
    let address = unsafe { mmap(at, size, access, flags, fd, 0) };
    // SAFETY: as above. The width of the offset of `mmap` depends on the C library.
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
/// `base` is a mapping of `size` bytes that is no longer used.
pub(crate) unsafe fn unmap(base: NonNull<u8>, size: usize) -> Result<()> {
    // SAFETY: as the caller grants.
    let result = unsafe { munmap(base.as_ptr().cast(), size) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Makes an empty file that can be sealed; it is close-on-exec.
#[expect(clippy::cast_possible_truncation, reason = "descriptors are of type `int`")]
pub(crate) fn create(name: &CStr) -> Result<File> {
    // A raw system call, because C libraries of 2018 have no such function. SAFETY: `memfd_create`
    // takes a string that ends with a zero, which it copies, and an `unsigned int`.
    let fd = unsafe { syscall(__NR_memfd_create as c_long, name.as_ptr(), MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor, which no other code knows.
    Ok(unsafe { File::from_raw_fd(fd as c_int) })
}

/// Returns the seals of a file (`F_SEAL_*`).
#[expect(clippy::cast_sign_loss, reason = "not negative")]
pub(crate) fn seals(fd: BorrowedFd<'_>) -> Result<u32> {
    // SAFETY: the descriptor is open, as it is borrowed; the command takes no argument.
    let seals = unsafe { fcntl(fd.as_raw_fd(), F_GET_SEALS as c_int) };
    if seals < 0 { Err(Error::last_os_error()) } else { Ok(seals as u32) }
}

/// Returns the number of a file's file system (`*_MAGIC`), and the size of its blocks in bytes.
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> Result<(i64, i64)> {
    let mut found = core::mem::MaybeUninit::<statfs>::zeroed();
    // SAFETY: the descriptor is open, as it is borrowed. The kernel writes its `struct statfs`,
    // which is the type of `found`, and nothing else.
    let result = unsafe { syscall(__NR_fstatfs as c_long, fd.as_raw_fd(), found.as_mut_ptr()) };
    if result < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: all zero is a value of it, and the kernel has written another one.
    let found = unsafe { found.assume_init() };
    #[allow(clippy::unnecessary_cast, reason = "32 bits on other machines")]
    Ok((found.f_type as i64, found.f_bsize as i64))
}

/// Reads a word at an offset of a file. Unlike a read through a mapping, it allocates no memory for
/// a page that was never written, and does not wait for a process that holds the file.
pub(crate) fn read_word(fd: BorrowedFd<'_>, offset: usize) -> Result<u32> {
    let mut word = [0; 4];
    // SAFETY: the descriptor is open, as it is borrowed; the buffer has as many bytes as the call
    // may write.
    #[cfg(target_pointer_width = "64")]
    let read = unsafe { pread(fd.as_raw_fd(), word.as_mut_ptr().cast(), word.len(), offset as i64) };
    // SAFETY: as above.
    #[cfg(target_pointer_width = "32")]
    let read = unsafe { pread64(fd.as_raw_fd(), word.as_mut_ptr().cast(), word.len(), offset as i64) };
    match usize::try_from(read) {
        Ok(read) if read == word.len() => Ok(u32::from_ne_bytes(word)),
        Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(Error::last_os_error()),
    }
}

/// Adds to the seals of a file.
pub(crate) fn add_seals(fd: BorrowedFd<'_>, seals: u32) -> Result<()> {
    // SAFETY: the descriptor is open, as it is borrowed; the command takes an `int`.
    let result = unsafe { fcntl(fd.as_raw_fd(), F_ADD_SEALS as c_int, seals as c_int) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Converts the error of a system call into the error of this crate.
pub(super) fn system(call: &'static str) -> impl Fn(Error) -> crate::error::Error {
    move |error| crate::error::Error::System { call, errno: errno(&error) }
}

/// Returns the number of an error of the system, or 0.
pub(super) fn errno(error: &Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}
