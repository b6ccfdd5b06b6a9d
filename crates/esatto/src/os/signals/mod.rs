//! Signals: blocks them for threads of this crate, because handlers are for the program's threads,
//! and catches those that end the process, if the program wants it.

#[cfg(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
))]
mod action;
#[cfg(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
))]
pub(crate) mod ending;
#[cfg(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
))]
mod other_copies;

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;

/// A set of signals. On the supported systems it has 4 to 128 bytes. Only the C library writes it.
type Set = MaybeUninit<[u64; 16]>;

unsafe extern "C" {
    fn sigfillset(set: *mut Set) -> c_int;
    fn sigdelset(set: *mut Set, signal: c_int) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const Set, old: *mut Set) -> c_int;
}

/// True if the numbers are those of Linux on most processors; false if they are those of BSD.
const USUAL: bool = cfg!(any(target_os = "linux", target_os = "android"))
    && !cfg!(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64"));

const SIG_BLOCK: c_int = if USUAL { 0 } else { 1 };
#[cfg(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
))]
const SIG_UNBLOCK: c_int = if USUAL { 1 } else { 2 };

/// The signals that a thread raises by its own fault. Blocking them would end the process at once:
/// ILL, TRAP, ABRT, FPE, SEGV, BUS and SYS.
const OWN_FAULTS: [c_int; 7] = if USUAL { [4, 5, 6, 8, 11, 7, 31] } else { [4, 5, 6, 8, 11, 10, 12] };

/// Blocks all signals for the calling thread, except those that its own faults raise.
pub(crate) fn block() {
    let mut set = Set::uninit();
    // SAFETY: the set is large enough, and filled before anything else happens to it. The numbers
    // are of existing signals; for others the functions fail and do nothing.
    unsafe {
        sigfillset(&raw mut set);
        for signal in OWN_FAULTS {
            sigdelset(&raw mut set, signal);
        }
        pthread_sigmask(SIG_BLOCK, &raw const set, ptr::null_mut());
    }
}
