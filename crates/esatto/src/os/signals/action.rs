//! The C library's `sigaction`.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

/// Signals whose default action ends a process and which are caught: SIGINT, SIGTERM and SIGHUP,
/// which have these numbers on all systems.
pub(super) const ENDING: [u8; 3] = [2, 15, 1];

/// A handler that gets all that is known of a signal.
pub(super) type Handler = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void);
/// A handler that gets only the number.
type SimpleHandler = unsafe extern "C" fn(c_int);

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

const IS_APPLE: bool = cfg!(target_vendor = "apple");
const SA_SIGINFO: c_int = if IS_APPLE { 0x40 } else { 4 };
const SA_ONSTACK: c_int = if IS_APPLE { 1 } else { 0x0800_0000 };
const SA_RESTART: c_int = if IS_APPLE { 2 } else { 0x1000_0000 };
const SA_NODEFER: c_int = if IS_APPLE { 0x10 } else { 0x4000_0000 };
const SA_RESETHAND: c_int = if IS_APPLE { 4 } else { 0x8000_0000_u32 as c_int };

/// A set of signals, as a part of [`Action`].
#[cfg(target_vendor = "apple")]
type Set = u32;
#[cfg(target_os = "android")]
type Set = core::ffi::c_ulong;
#[cfg(target_os = "linux")]
type Set = [core::ffi::c_ulong; 128 / size_of::<core::ffi::c_ulong>()];

/// Action of a process at a signal: `struct sigaction`. MIPS, SPARC and s390x have other layouts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Action {
    #[cfg(all(target_os = "android", target_pointer_width = "64"))]
    flags: c_int,
    handler: usize,
    mask: Set,
    #[cfg(not(all(target_os = "android", target_pointer_width = "64")))]
    flags: c_int,
    #[cfg(not(target_vendor = "apple"))]
    restorer: usize,
}

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
}

impl Action {
    /// Returns the present action; `None` if there is no such signal.
    pub(super) fn of(signal: c_int) -> Option<Self> {
        Self::change(signal, ptr::null())
    }

    /// Makes this the action, and returns the previous one.
    pub(super) fn set(&self, signal: c_int) -> Option<Self> {
        Self::change(signal, self)
    }

    fn change(signal: c_int, new: *const Self) -> Option<Self> {
        let mut old = MaybeUninit::<Self>::zeroed();
        // SAFETY: both are null or have the layout of the C library, and `old` is long enough.
        let failed = unsafe { sigaction(signal, new, old.as_mut_ptr()) };
        // SAFETY: zeroed, and then perhaps written; every content is valid.
        (failed == 0).then(|| unsafe { old.assume_init() })
    }

    /// Returns an action that calls `handler`, and otherwise does as this one: a system call that
    /// this one would interrupt is interrupted.
    pub(super) fn replaced_by(&self, handler: Handler) -> Self {
        let kept = if self.is_default() { SA_RESTART } else { self.flags & (SA_RESTART | SA_NODEFER) };
        Self { handler: handler as usize, flags: kept | SA_SIGINFO | SA_ONSTACK, ..*self }
    }

    /// Returns the action that a process has without any.
    pub(super) fn to_default(self) -> Self {
        Self { handler: SIG_DFL, flags: 0, ..self }
    }

    /// Returns the address of the handler; 0 for the default action.
    pub(super) const fn address(&self) -> usize {
        self.handler
    }

    pub(super) const fn is_default(&self) -> bool {
        self.handler == SIG_DFL
    }

    /// Returns whether the handler is called only once.
    pub(super) const fn is_once(&self) -> bool {
        self.flags & SA_RESETHAND != 0
    }

    pub(super) const fn is_ignored(&self) -> bool {
        self.handler == SIG_IGN
    }

    pub(super) const fn is_same(&self, other: &Self) -> bool {
        self.handler == other.handler
    }

    pub(super) fn is(&self, handler: Handler) -> bool {
        self.handler == handler as usize
    }

    /// Calls the handler. In a handler, with its arguments.
    pub(super) fn call(&self, signal: c_int, info: *mut c_void, context: *mut c_void) {
        if self.is_default() || self.is_ignored() {
            return;
        }
        if self.flags & SA_SIGINFO != 0 {
            // SAFETY: the program has installed a function of this type, for these arguments.
            unsafe { core::mem::transmute::<usize, Handler>(self.handler)(signal, info, context) }
        } else {
            // SAFETY: the program has installed a function of this type, for this argument.
            unsafe { core::mem::transmute::<usize, SimpleHandler>(self.handler)(signal) }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_c_library() {
        let ours = [
            size_of::<Action>(),
            core::mem::offset_of!(Action, handler),
            core::mem::offset_of!(Action, mask),
            core::mem::offset_of!(Action, flags),
        ];
        let theirs = [
            size_of::<libc::sigaction>(),
            core::mem::offset_of!(libc::sigaction, sa_sigaction),
            core::mem::offset_of!(libc::sigaction, sa_mask),
            core::mem::offset_of!(libc::sigaction, sa_flags),
        ];
        assert_eq!(ours, theirs);
        let ours = [SA_SIGINFO, SA_ONSTACK, SA_RESTART, SA_NODEFER, SA_RESETHAND];
        let theirs = [libc::SA_SIGINFO, libc::SA_ONSTACK, libc::SA_RESTART, libc::SA_NODEFER, libc::SA_RESETHAND];
        assert_eq!(ours, theirs);
    }
}
