//! Descriptors that whoever started this program left open for it.

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

/// Takes over the descriptor with this number, which was open when this program was started, and sets it
/// close-on-exec.
///
/// Numbers of such descriptors are told in environment variables (`LISTEN_FDS`, `TRACED_NOTIFY_FD`, …). A number is
/// only a claim, and a wrong one must not take a descriptor away from the code that owns it. What was inherited is told
/// apart by its close-on-exec flag: with it, it would not have survived the start of this program, while the
/// standard library and this project set it on everything that they open. So does this function, which is why
/// each descriptor can be taken once.
///
/// # Errors
///
/// The number is that of a standard stream, or no inherited descriptor has it (any more).
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if number <= 2 || descriptor_flags(number)? & FD_CLOEXEC != 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: it is open, as was just seen. Nobody in this process owns it: what is owned is close-on-exec, see above,
    // and between the look at the flag and its being set nobody else can have been here, because of the lock.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

/// Numbers of the kernel, the same on all architectures.
const F_GETFD: c_int = 1;
const FD_CLOEXEC: c_int = 1;

/// `fcntl(F_GETFD)` of a number that need not be open, which a `BorrowedFd` would have to be.
fn descriptor_flags(number: RawFd) -> io::Result<c_int> {
    unsafe extern "C" {
        fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    }
    // SAFETY: the declaration is that of POSIX and std links the C library; the command takes no argument, reads a flag of
    // whatever has this number, and fails if nothing does.
    let flags = unsafe { fcntl(number, F_GETFD) };
    if flags < 0 { Err(io::Error::last_os_error()) } else { Ok(flags) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn what_this_program_opened_is_not_for_taking() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(inherited(file.as_raw_fd()).is_err());
        assert!(file.metadata().is_ok());
        for nothing in [-1, 0, 2, 1_000_000, RawFd::MAX] {
            assert!(inherited(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn what_it_inherited_can_be_taken_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let number = file.into_raw_fd();
        let taken = inherited(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(rustix::io::fcntl_getfd(&taken).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        assert!(inherited(number).is_err());
    }
}
