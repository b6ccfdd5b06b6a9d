//! [`Credentials`] of a peer, and the users of this process.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};

/// User and process at the other end of a unix socket, as the kernel reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user id at the time of `connect` (of `listen`, seen from the client).
    pub uid: u32,
    /// Process id; `None` if the process is in a pid namespace that is not visible here.
    pub pid: Option<i32>,
}

/// Returns the real and the effective user of this process.
pub(crate) fn own_users() -> [u32; 2] {
    unsafe extern "C" {
        safe fn getuid() -> u32;
        safe fn geteuid() -> u32;
    }
    [getuid(), geteuid()]
}

/// Returns the result of `getsockopt(SO_PEERCRED)`, as plain integers.
pub(super) fn peer_credentials(fd: BorrowedFd<'_>) -> Option<Credentials> {
    /// `struct ucred` of the kernel.
    #[repr(C)]
    struct Ucred {
        pid: i32,
        uid: u32,
        gid: u32,
    }
    const _: () = assert!(size_of::<Ucred>() == 12);

    /// `SOL_SOCKET` and `SO_PEERCRED`, which are the same on all architectures of Rust except
    /// these.
    const NAMES: (c_int, c_int) = if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
        (0xffff, 18)
    } else if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        (0xffff, 0x40)
    } else if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) {
        (1, 21)
    } else {
        (1, 17)
    };

    unsafe extern "C" {
        fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut u32) -> c_int;
    }

    let mut cred = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    #[expect(clippy::cast_possible_truncation, reason = "twelve bytes")]
    let mut len = size_of::<Ucred>() as u32;
    // SAFETY: the declaration is that of POSIX and std links the C library; the descriptor is open
    // because it is borrowed; `value` points to `len` writable bytes, of which every bit pattern is
    // a valid `Ucred`, and both outlive the call.
    let result = unsafe { getsockopt(fd.as_raw_fd(), NAMES.0, NAMES.1, (&raw mut cred).cast(), &raw mut len) };
    let known = result == 0 && len as usize == size_of::<Ucred>() && cred.uid != u32::MAX;
    known.then(|| Credentials { uid: cred.uid, pid: (cred.pid > 0).then_some(cred.pid) })
}
