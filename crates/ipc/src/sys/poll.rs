//! [`poll`]: waits for descriptors, through the C library. The feature of `rustix` that has it
//! takes long to compile.

use core::ffi::{c_int, c_long, c_short, c_void};
use core::marker::PhantomData;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use linux_raw_sys::general::{POLLERR, POLLHUP, POLLIN, POLLOUT};

/// Type of a count of `ppoll`.
#[cfg(target_os = "android")]
type Count = core::ffi::c_uint;
#[cfg(not(target_os = "android"))]
type Count = core::ffi::c_ulong;

unsafe extern "C" {
    fn ppoll(fds: *mut PollFd<'_>, count: Count, timeout: *const Time, signals: *const c_void) -> c_int;
}

/// `struct timespec`. If `long` has 32 bits, so have the seconds of the symbol `ppoll`; headers may
/// redirect to another symbol.
#[repr(C)]
struct Time {
    seconds: c_long,
    nanoseconds: c_long,
}

/// Descriptor to wait for: `struct pollfd`.
#[derive(Debug)]
#[repr(C)]
pub struct PollFd<'fd> {
    fd: c_int,
    events: c_short,
    ready: c_short,
    borrowed: PhantomData<BorrowedFd<'fd>>,
}

const _: () = assert!(size_of::<PollFd<'_>>() == 8);

impl<'fd> PollFd<'fd> {
    /// Makes an entry that waits for something to read, and, if `for_writing`, for room to write.
    #[expect(clippy::cast_possible_truncation, reason = "two low bits")]
    pub fn new(fd: BorrowedFd<'fd>, for_writing: bool) -> Self {
        let events = if for_writing { POLLIN | POLLOUT } else { POLLIN };
        Self { fd: fd.as_raw_fd(), events: events as c_short, ready: 0, borrowed: PhantomData }
    }

    /// Returns true if there is something to read, including the end or an error.
    pub fn is_readable(&self) -> bool {
        c_int::from(self.ready) & (POLLIN | POLLHUP | POLLERR) as c_int != 0
    }

    /// Returns true if the peer reads and writes no more.
    pub fn is_hung_up(&self) -> bool {
        c_int::from(self.ready) & (POLLHUP | POLLERR) as c_int != 0
    }

    /// Returns true if there is room to write.
    pub fn is_writable(&self) -> bool {
        c_int::from(self.ready) & POLLOUT as c_int != 0
    }
}

/// Waits until a descriptor is ready or the time is over. Returns the number of ready descriptors.
///
/// # Errors
///
/// [`io::ErrorKind::Interrupted`] after a signal. Other errors mean that the kernel has no memory.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| Time {
        seconds: c_long::try_from(timeout.as_secs()).unwrap_or(c_long::MAX),
        nanoseconds: timeout.subsec_nanos() as c_long,
    });
    let timeout = timeout.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the descriptors lie in `fds`, as many as it has, and may be written; the time is null
    // or lives until the end of the call; the signal mask is null.
    let ready = unsafe { ppoll(fds.as_mut_ptr(), fds.len() as Count, timeout, core::ptr::null()) };
    usize::try_from(ready).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_ready_descriptors_are_reported() {
        let (one, mut other) = UnixStream::pair().expect("descriptors");
        let mut fds = [PollFd::new(one.as_fd(), false), PollFd::new(other.as_fd(), true)];
        assert_eq!(poll(&mut fds, None).expect("no signals"), 1);
        assert_eq!(fds.each_ref().map(|fd| (fd.is_readable(), fd.is_writable())), [(false, false), (false, true)]);

        let mut fds = [PollFd::new(one.as_fd(), false)];
        assert_eq!(poll(&mut fds, Some(Duration::from_nanos(1))).expect("no signals"), 0);

        (&other).write_all(b"x").expect("room");
        assert_eq!(poll(&mut [PollFd::new(one.as_fd(), true)], Some(Duration::MAX)).expect("no signals"), 1);
        other.flush().expect("nothing to do");
        drop(other);
        let mut fds = [PollFd::new(one.as_fd(), false)];
        assert_eq!((poll(&mut fds, None).expect("no signals"), fds[0].is_readable()), (1, true));
    }
}
