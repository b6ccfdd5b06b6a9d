//! The boundary: no panic crosses it, and none ends the program.
//!
//! Each function that the library exports runs in a [`guard`]. A panic, of which none is known, says itself on stderr as panics do, and the function then has done nothing
//! and returns what says so: null, false, 0, the end of an iteration. This costs nothing as long as there is none. What the contract says ends the process does so by
//! [`die`](crate::text::die), which is no panic.
//!
//! Functions of the program, which the library calls, are `extern "C-unwind"`: an exception of C++ that leaves one is no undefined behaviour then, but ends the
//! process with a message, as with upstream's library, which is compiled without exceptions. It is for the program to catch its own.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use core::{mem, ptr};
use std::panic::catch_unwind;

/// What a function returns that has done nothing.
pub(crate) trait Nothing {
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($type:ty = $nothing:expr;)*) => {
        $(impl Nothing for $type {
            const NOTHING: Self = $nothing;
        })*
    };
}

nothing! {
    () = ();
    bool = false;
    i32 = 0;
    u32 = 0;
    u64 = 0;
}

impl<T> Nothing for *mut T {
    const NOTHING: Self = ptr::null_mut();
}

impl<T> Nothing for *const T {
    const NOTHING: Self = ptr::null();
}

/// Runs the body of an exported function.
#[inline(always)]
pub(crate) fn guard<R: Nothing>(body: impl FnOnce() -> R) -> R {
    guard_or(body, || R::NOTHING)
}

/// As [`guard`], for functions that leave something behind when they have done nothing.
#[inline(always)]
pub(crate) fn guard_or<R>(body: impl FnOnce() -> R, nothing: impl FnOnce() -> R) -> R {
    // What a panic leaves half done belongs to a thread, or is behind a mutex that does not mind: writers and sequences drop what was not ended.
    let body = AssertUnwindSafe(|| {
        #[cfg(test)]
        planted::go_off();
        body()
    });
    match catch_unwind(body) {
        Ok(result) => result,
        Err(payload) => {
            forget(payload);
            nothing()
        }
    }
}

/// What was panicked with may panic when it is dropped.
#[cold]
fn forget(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

/// A panic in the next function of this thread.
#[cfg(test)]
pub(crate) mod planted {
    use core::cell::Cell;

    thread_local! {
        static PLANTED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn go_off() {
        assert!(!PLANTED.take(), "planted");
    }

    /// What `function` returns whose guard meets a panic.
    pub(crate) fn in_a<R>(function: impl FnOnce() -> R) -> R {
        PLANTED.set(true);
        let result = function();
        assert!(!PLANTED.take(), "the function has no guard");
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_of_a_panic_is_nothing() {
        assert_eq!(guard(|| 5), 5);
        assert_eq!(guard(|| -> u64 { panic!("as wanted") }), 0);
        assert_eq!(guard_or(|| panic!("as wanted"), || 7), 7);
        assert!(guard(|| -> *const u8 { panic!("as wanted") }).is_null());
    }

    #[test]
    fn a_payload_that_panics_does_not_get_out() {
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
