//! Survival of faults in mapped memory.
//!
//! Memory that was checked keeps its pages, but for what no check can foresee: a page that cannot
//! be read back from swap, a machine's memory that fails, a way to take pages away that is not
//! known yet. The kernel then ends the process by SIGBUS. A service must not end because of one
//! client, so its handler puts empty memory in place of the mapping, and the access is repeated: it
//! finds zeros, which are free pages. The mapping is *lost* from then on
//! ([`Region::is_lost`](crate::Region::is_lost)): what was copied from it last is not to be
//! trusted, and the service disconnects whose memory it is.
//!
//! Faults elsewhere go to the handler that was there before, or end the process as if there were
//! none. Programs with handlers of their own are asked for nothing: only a service
//! [installs](install) this one.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use core::{mem, ptr};
use std::sync::{Once, OnceLock};

use super::{mapping_list, memfd};

/// What was done about SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Faults that were survived.
static SURVIVED: AtomicU32 = AtomicU32::new(0);

/// Installs the handler, once for the process. Handlers that others install later must pass on what
/// is not theirs, as this one does.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zero is a value of this struct of numbers and nullable pointers.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: only asks what is there.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) };
        // Known before the handler can run.
        let _ = BEFORE.set(before);
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        // On the stack for signals, where there is one: the handler before may be that for
        // overflows of the ordinary one.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the handler takes what `SA_SIGINFO` says, and calls only what may be called in a
        // handler.
        unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) };
    });
}

/// Faults that were survived so far, by all mappings of this process.
pub fn survived() -> u32 {
    SURVIVED.load(Ordering::Acquire)
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands in a valid one.
    let code = unsafe { (*info).si_code };
    // Those that somebody sends have none, or a negative one.
    let is_fault = code > 0;
    if is_fault {
        // SAFETY: faults have an address.
        let address = unsafe { (*info).si_addr() }.addr();
        if let Some((base, size)) = mapping_list::lose(address) {
            // SAFETY: a listed mapping is there. It is memory of a stranger, in which anything may
            // be found at any time. No reference to its bytes exists but to atomics.
            if unsafe { memfd::map_zeros_over(base.as_ptr(), size) }.is_ok() {
                SURVIVED.fetch_add(1, Ordering::Release);
                return;
            }
        }
    }
    pass_on(is_fault, signal, info, context);
}

/// Does what would have been done without this handler.
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
            // SAFETY: somebody installed it as a function of this type, by the same flag.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: somebody installed it as a function of this type, by the absence of that
            // flag.
            let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}
