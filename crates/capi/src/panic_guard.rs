//! The boundary between the library and the program: no panic crosses it, and no panic ends the
//! program.
//!
//! Each exported function runs in a [`guard`]. No panic is known. If one happens, it prints its
//! message on stderr as panics do. The function then does nothing and returns its
//! [fallback](Fallback): null, false, 0, the end of an iteration. Without a panic the guard costs
//! nothing. Where the contract says that the library ends the process, it calls
//! [`die`](crate::diagnostics::die), which is no panic.
//!
//! Functions of the program, which the library calls, are `extern "C-unwind"`. An exception of C++
//! that leaves one is then no undefined behaviour: it ends the process with a message. Upstream's
//! library does the same, because it is compiled without exceptions. The program must catch its
//! own.
//!
//! A thread that is cancelled (`pthread_cancel`) would end the process in the same way, because
//! glibc unwinds its stack. So nothing here is a cancellation point: trace points postpone the
//! cancellation where they call the system or the program, and all other functions run in
//! [`guard_uncancelled`].

use core::any::Any;
use core::panic::AssertUnwindSafe;
use core::{mem, ptr};
use std::panic::catch_unwind;

use esatto::raw::Uncancelled;

use crate::ffi::Owned;

/// Value that an exported function returns after a panic: null, false, 0.
pub(crate) trait Fallback {
    const FALLBACK: Self;
}

macro_rules! fallbacks {
    ($($type:ty = $fallback:expr;)*) => {
        $(impl Fallback for $type {
            const FALLBACK: Self = $fallback;
        })*
    };
}

fallbacks! {
    () = ();
    bool = false;
    i32 = 0;
    u32 = 0;
    u64 = 0;
}

impl<T> Fallback for *mut T {
    const FALLBACK: Self = ptr::null_mut();
}

impl<T> Fallback for *const T {
    const FALLBACK: Self = ptr::null();
}

impl<T> Fallback for Owned<T> {
    const FALLBACK: Self = Self::NULL;
}

/// Runs the body of an exported function.
#[inline(always)]
pub(crate) fn guard<R: Fallback>(body: impl FnOnce() -> R) -> R {
    guard_or(body, || R::FALLBACK)
}

/// As [`guard`], for a function that is no trace point: it may wait, read files or call the
/// program. Meanwhile its thread is not cancelled.
pub(crate) fn guard_uncancelled<R: Fallback>(body: impl FnOnce() -> R) -> R {
    let _uncancelled = Uncancelled::begin();
    guard(body)
}

/// As [`guard`], with a function that makes the value to return after a panic.
#[inline(always)]
pub(crate) fn guard_or<R>(body: impl FnOnce() -> R, fallback: impl FnOnce() -> R) -> R {
    // A panic may leave state half changed. That state belongs to one thread, or is in a mutex that
    // ignores poisoning. Writers and sequences drop packets that were not ended.
    let body = AssertUnwindSafe(|| {
        #[cfg(test)]
        test_panic::happen();
        body()
    });
    match catch_unwind(body) {
        Ok(result) => result,
        Err(payload) => {
            drop_payload(payload);
            fallback()
        }
    }
}

/// Drops the payload of a panic. If that panics, leaks the payload of the second panic.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

/// A panic that a test asks for, in the next exported function that its thread calls.
#[cfg(test)]
pub(crate) mod test_panic {
    use core::cell::Cell;

    thread_local! {
        static IS_WANTED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn happen() {
        assert!(!IS_WANTED.take(), "wanted by a test");
    }

    /// Calls an exported function in whose guard a panic happens, and returns its result.
    pub(crate) fn in_guard_of<R>(function: impl FnOnce() -> R) -> R {
        IS_WANTED.set(true);
        let result = function();
        assert!(!IS_WANTED.take(), "the function has no guard");
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_fallback() {
        assert_eq!(guard(|| 5), 5);
        assert_eq!(guard(|| -> u64 { panic!("as wanted") }), 0);
        assert_eq!(guard_or(|| panic!("as wanted"), || 7), 7);
        assert!(guard(|| -> *const u8 { panic!("as wanted") }).is_null());
    }

    #[test]
    fn a_panic_in_the_drop_of_a_payload_stays_inside() {
        struct Bomb(u32);

        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.0 > 0 {
                    std::panic::panic_any(Self(self.0 - 1));
                }
            }
        }

        assert!(!guard(|| -> bool { std::panic::panic_any(Bomb(1)) }));
    }
}
