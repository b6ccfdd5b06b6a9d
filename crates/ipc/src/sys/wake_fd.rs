//! [`WakeFd`]: a descriptor that wakes a thread up which waits in [`poll`](super::poll()).

use core::ffi::{c_int, c_uint};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

/// Flags of the descriptor.
const FLAGS: c_int = (linux_raw_sys::general::EFD_CLOEXEC | linux_raw_sys::general::EFD_NONBLOCK) as c_int;

unsafe extern "C" {
    fn eventfd(initial: c_uint, flags: c_int) -> c_int;
}

/// Counter of the kernel (`eventfd`), which is readable after [`wake`](Self::wake).
#[derive(Debug)]
pub struct WakeFd(OwnedFd);

impl WakeFd {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the declaration is that of the C library, and the call touches no memory.
        let fd = unsafe { eventfd(0, FLAGS) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable.
    pub fn wake(&self) {
        // It fails only if it is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable.
    pub fn reset(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Wake for WakeFd {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sys::{PollFd, poll};

    #[test]
    fn a_wake_is_seen_once() {
        let wake = WakeFd::new().expect("descriptors");
        let is_ready = || poll(&mut [PollFd::new(wake.as_fd(), false)], Some(Duration::ZERO)).expect("no signals");
        assert_eq!(is_ready(), 0);
        wake.wake();
        wake.wake();
        assert_eq!(is_ready(), 1);
        wake.reset();
        assert_eq!(is_ready(), 0);
    }
}
