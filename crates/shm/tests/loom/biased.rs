//! The lock of a thread's state in the SDK (`crates/esatto/src/sys/biased.rs`), which the control thread takes while the thread is elsewhere.
//!
//! The file is compiled here with loom's types, as the SDK itself cannot be. A model has no `membarrier`: what that does for both sides each side does
//! by a fence of its own.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[path = "../../../esatto/src/sys"]
mod sys {
    #[path = "biased.rs"]
    #[allow(dead_code, unreachable_pub, reason = "the SDK uses all of it")]
    pub(super) mod biased;

    /// What `sync.rs` of the SDK is, and which half of the barrier is there.
    pub(super) mod sync {
        use core::sync::atomic::{AtomicBool as Switch, Ordering};

        pub(in super::super) use loom::sync::atomic::{AtomicBool, AtomicU8, fence};
        pub(in super::super) use loom::sync::{Mutex, MutexGuard};

        pub(in super::super) static OWNERS_HALF: Switch = Switch::new(true);
        pub(in super::super) static OTHERS_HALF: Switch = Switch::new(true);

        pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().expect("nobody panics")
        }

        pub(in super::super) fn light_fence() {
            if OWNERS_HALF.load(Ordering::Relaxed) {
                fence(Ordering::SeqCst);
            }
        }

        pub(in super::super) fn has_barrier() -> bool {
            true
        }

        pub(in super::super) fn barrier_everywhere() {
            if OTHERS_HALF.load(Ordering::Relaxed) {
                fence(Ordering::SeqCst);
            }
        }
    }
}

use sys::biased::Biased;

/// Loom notices if two threads are in it at once, or if one does not see what another did before.
type Value = UnsafeCell<u32>;

fn increment(value: &mut Value) {
    // SAFETY: loom looks.
    value.with_mut(|value| unsafe { *value += 1 });
}

/// The owner is inside twice, while `others` threads try to hold the value.
fn owner_and(others: usize) {
    let biased = Arc::new(Biased::new(Value::new(0)));
    let handles: Vec<_> = (0..others)
        .map(|_| {
            let biased = Arc::clone(&biased);
            thread::spawn(move || {
                let mut held = 0;
                Biased::hold_all([&*biased].into_iter(), |value| {
                    increment(value);
                    held += 1;
                });
                held
            })
        })
        .collect();
    for _ in 0..2 {
        // SAFETY: only this thread enters.
        let mut entered = unsafe { biased.enter() }.expect("it is not inside");
        increment(entered.get());
    }
    let held: u32 = handles.into_iter().map(|handle| handle.join().expect("it ends")).sum();
    // SAFETY: as above.
    let mut entered = unsafe { biased.enter() }.expect("it is not inside");
    let total = entered.get().with(|value| {
        // SAFETY: loom looks.
        unsafe { *value }
    });
    assert_eq!(total, 2 + held);
}

/// One test, as the halves are the process's.
#[test]
fn nobody_is_inside_together_and_both_halves_of_the_barrier_are_needed() {
    use core::sync::atomic::Ordering::Relaxed;
    use std::panic::catch_unwind;

    crate::check(3, || owner_and(1));
    crate::check(2, || owner_and(2));
    for half in [&sys::sync::OWNERS_HALF, &sys::sync::OTHERS_HALF] {
        half.store(false, Relaxed);
        let without = catch_unwind(|| crate::check(3, || owner_and(1)));
        half.store(true, Relaxed);
        assert!(without.is_err(), "a model that does not notice");
    }
}
