//! Descriptors that the parent left open for this program.

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

/// Takes over the descriptor with this number, which was open when this program was started, and
/// sets it close-on-exec.
///
/// Environment variables (`LISTEN_FDS`, `TRACED_NOTIFY_FD`, …) have the numbers of such
/// descriptors. A number is only a claim, and a wrong one must not take a descriptor away from the
/// code that owns it. The close-on-exec flag distinguishes inherited descriptors. With it, a
/// descriptor would not have survived the start of this program. The standard library and this
/// project set it on all descriptors that they open. This function also sets it, so each descriptor
/// can be taken once.
///
/// # Errors
///
/// The number is that of a standard stream, or no inherited descriptor has it.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if number <= 2 || descriptor_flags(number)? & FD_CLOEXEC != 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: it is open, as was just checked. No code in this process owns it: owned descriptors
    // are close-on-exec, see above. Because of the lock, no other thread can take it between the
    // check of the flag and its change.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

/// Numbers of the kernel, the same on all architectures.
const F_GETFD: c_int = 1;
const FD_CLOEXEC: c_int = 1;

/// Calls `fcntl(F_GETFD)` on a number that need not be open, which a `BorrowedFd` must be.
fn descriptor_flags(number: RawFd) -> io::Result<c_int> {
    unsafe extern "C" {
        fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    }
    // SAFETY: the declaration is that of POSIX and std links the C library; the command takes no
    // argument, reads a flag of the descriptor with this number, and fails if there is none.
    let flags = unsafe { fcntl(number, F_GETFD) };
    if flags < 0 { Err(io::Error::last_os_error()) } else { Ok(flags) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn a_descriptor_that_this_program_opened_cannot_be_taken() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(inherited(file.as_raw_fd()).is_err());
        assert!(file.metadata().is_ok());
        for nothing in [-1, 0, 2, 1_000_000, RawFd::MAX] {
            assert!(inherited(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn an_inherited_descriptor_can_be_taken_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let number = file.into_raw_fd();
        let taken = inherited(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(rustix::io::fcntl_getfd(&taken).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        assert!(inherited(number).is_err());
    }
}
