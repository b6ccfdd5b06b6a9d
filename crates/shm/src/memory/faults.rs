//! Handler of SIGBUS: a service survives faults in mapped memory.
//!
//! Memory that was checked keeps its pages, with exceptions that no check can foresee. A page may
//! not be readable from swap, a machine's memory may fail, or there may be an unknown way to take
//! pages away. The kernel then ends the process with SIGBUS. A service must not end because of one
//! client. So its handler replaces the mapping by zeroed memory, and the access is repeated: it
//! reads zeros, which are free pages. The mapping is then *lost*
//! ([`Region::is_lost`](crate::Region::is_lost)). The last copy from it must not be trusted, and
//! the service disconnects the client.
//!
//! Other faults go to the handler that was installed before, or end the process as if there were no
//! handler. Only a service [installs](install) this handler, so programs need not change theirs.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use core::{mem, ptr};
use std::sync::{Once, OnceLock};

use super::{mapping_list, memfd};

/// Action for SIGBUS that was installed before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Number of faults that were survived.
static SURVIVED: AtomicU32 = AtomicU32::new(0);

/// Installs the handler, once for the process. A handler that is installed later must pass on
/// faults that it does not handle, as this one does.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zero is a value of this struct of numbers and nullable pointers.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: only reads the current action.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) };
        // Set before the handler can run.
        let _ = BEFORE.set(before);
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        // On the signal stack, if there is one: the handler before may be the one for stack
        // overflows.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the handler has the signature for `SA_SIGINFO`, and calls only functions that a
        // handler may call.
        unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) };
    });
}

/// Returns the number of faults that were survived so far, in all mappings of this process.
pub fn survived() -> u32 {
    SURVIVED.load(Ordering::Acquire)
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer.
    let code = unsafe { (*info).si_code };
    // Signals that a process sends have code 0, or a negative code.
    let is_fault = code > 0;
    if is_fault {
        // SAFETY: faults have an address.
        let address = unsafe { (*info).si_addr() }.addr();
        if let Some((base, size)) = mapping_list::lose(address) {
            // SAFETY: a listed mapping exists. It is memory of a stranger, whose content may change
            // at any time. References to its bytes exist only as atomics.
            if unsafe { memfd::map_zeros_over(base.as_ptr(), size) }.is_ok() {
                SURVIVED.fetch_add(1, Ordering::Release);
                return;
            }
        }
    }
    pass_on(is_fault, signal, info, context);
}

/// Does what would happen without this handler.
fn pass_on(is_fault: bool, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all zero is a value of this struct, and says: the default, which ends the
            // process.
            let default: libc::sigaction = unsafe { mem::zeroed() };
            // SAFETY: both may be called in a handler. A fault comes again by itself, at the right
            // place.
            unsafe {
                libc::sigaction(signal, &default, ptr::null_mut());
                if !is_fault {
                    libc::raise(signal);
                }
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was installed as a function of this type, by the same flag.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as a function of this type, by the absence of that flag.
            let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}
