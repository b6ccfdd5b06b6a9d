//! A lock that costs its owner next to nothing.
//!
//! The value belongs to one thread, which enters and leaves millions of times a second; once in a while another
//! thread wants it, provided that the owner is not inside. An ordinary lock would cost the owner two atomic read-modify-write operations each
//! time. Here it is two plain stores and a load:
//!
//! ```text
//! owner                          another thread
//!   busy := true                   held := true
//!   (nothing)                      barrier on all processors that run this process
//!   held? ─ no ─► inside           busy? ─ no ─► has it
//!   …                              …
//!   busy := false                  held := false
//! ```
//!
//! Of the two, at least one sees the other: this is Dekker's way, which needs a store to be seen before a later load on both
//! sides. The other thread pays for both by `membarrier`, which is a barrier on every processor (Linux ≥ 4.14). Where the system has none,
//! the flag [`FENCED`] is always set, and the owner makes a barrier of its own.
//!
//! A system can lose `membarrier` while the process runs: a filter of system calls (seccomp) is
//! installed later. Then the other thread sets [`FENCED`], and leaves the value to its owner until
//! the owner has answered, by [`Biased::fences`], that it makes a barrier each time it enters.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use super::sync::{barrier_everywhere, has_barrier, load_as_other, load_as_owner, store_as_owner};
use crate::order::Access;
use crate::sync::{AtomicBool, AtomicU8, Mutex, MutexGuard, fence, lock};

/// Another thread has the value, or tries to.
const HELD: u8 = 1;
/// The owner has to make a barrier itself.
const FENCED: u8 = 2;

/// A value of one thread that others can get while the thread is elsewhere.
#[derive(Debug)]
pub(crate) struct Biased<T> {
    /// The owner is inside.
    busy: AtomicBool,
    flags: AtomicU8,
    /// The owner knows of [`FENCED`]: it makes a barrier each time it enters, and made one when it
    /// set this.
    fences: AtomicBool,
    /// Held by the other thread as long as [`HELD`] is set.
    turn: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time: by the owner between `enter` and the drop of its guard, or by the one that has
// a `Held`, never both (see the head of the module). So `T` moves between threads, and is not shared.
unsafe impl<T: Send> Sync for Biased<T> {}

/// The owner is inside.
#[derive(Debug)]
pub(crate) struct Entered<'b, T> {
    biased: &'b Biased<T>,
}

/// Another thread than the owner has the value.
#[derive(Debug)]
pub(crate) struct Held<'b, T> {
    biased: &'b Biased<T>,
    _turn: MutexGuard<'b, ()>,
}

impl<T> Biased<T> {
    pub(crate) fn new(value: T) -> Self {
        let flags = if has_barrier() { 0 } else { FENCED };
        Self {
            busy: AtomicBool::new(false),
            flags: AtomicU8::new(flags),
            fences: AtomicBool::new(flags & FENCED != 0),
            turn: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// A value that nobody gets.
    #[cfg(esatto_loom)]
    pub(crate) fn busy_for_ever(value: T) -> Self {
        Self { busy: AtomicBool::new(true), ..Self::new(value) }
    }

    /// A value that nobody gets.
    #[cfg(not(esatto_loom))]
    pub(crate) const fn busy_for_ever(value: T) -> Self {
        Self {
            busy: AtomicBool::new(true),
            flags: AtomicU8::new(0),
            fences: AtomicBool::new(false),
            turn: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Whether the owner, who asks, is inside.
    pub(crate) fn is_entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Enters, as the owner. `None` if it is inside already. Waits for another thread that has the value.
    ///
    /// # Safety
    ///
    /// Only ever called by one thread.
    #[inline(always)]
    pub(crate) unsafe fn enter(&self) -> Option<Entered<'_, T>> {
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        store_as_owner(&self.busy, true, Ordering::Relaxed);
        // What another thread did to the value before it gave it back is to be seen.
        if load_as_owner(&self.flags, Access::Enter.ordering()) != 0 {
            self.enter_slowly();
        }
        Some(Entered { biased: self })
    }

    /// The guard of an owner that is inside, whose own was forgotten.
    ///
    /// # Safety
    ///
    /// The owner calls this; the guard of its last [`enter`](Self::enter) was forgotten, and so was every other that this returned since.
    pub(crate) unsafe fn entered(&self) -> Entered<'_, T> {
        Entered { biased: self }
    }

    #[cold]
    #[inline(never)]
    fn enter_slowly(&self) {
        loop {
            fence(Ordering::SeqCst);
            let flags = load_as_owner(&self.flags, Access::Enter.ordering());
            if flags & FENCED != 0 && !self.fences.load(Ordering::Relaxed) {
                // Whoever sees this sees that we are inside, unless we have left since.
                self.fences.store(true, Access::TellFences.ordering());
            }
            if flags & HELD == 0 {
                return;
            }
            store_as_owner(&self.busy, false, Access::StepBack.ordering());
            drop(lock(&self.turn));
            store_as_owner(&self.busy, true, Ordering::Relaxed);
        }
    }

    /// Takes hold of those values whose owners are not inside, and hands each to `f`. Leaves out
    /// values of owners that have not entered since the system lost its barrier.
    ///
    /// Not to be called by `f`; and `all` has not the value of an owner who calls this: it would wait for itself.
    pub(crate) fn hold_all<'b>(all: impl Iterator<Item = &'b Self>, mut f: impl FnMut(&mut T))
    where
        T: 'b,
    {
        let tried: Vec<Held<'b, T>> = all.map(Self::try_hold).collect();
        // One for all: it may take microseconds.
        let is_everywhere = barrier_everywhere();
        for held in tried {
            if !is_everywhere && !held.biased.makes_barriers() {
                continue;
            }
            // Pairs with the owner's leaving.
            if !load_as_other(&held.biased.busy, Access::SeeBusy.ordering()) {
                // SAFETY: HELD was set before the barrier, which was one for the owner too: the
                // system made it there, or the owner makes its own. The owner is not inside after
                // it. If it enters now, it sees HELD, and waits until `held` is dropped. Nobody
                // else has a `Held`: it comes with the mutex.
                f(unsafe { &mut *held.biased.value.get() });
            }
        }
    }

    /// Whether the owner makes a barrier each time it enters. If it does not know yet that it has
    /// to, it is told.
    fn makes_barriers(&self) -> bool {
        let knows = self.fences.load(Access::SeeFences.ordering());
        if !knows {
            self.flags.fetch_or(FENCED, Ordering::Relaxed);
        }
        knows
    }

    fn try_hold(&self) -> Held<'_, T> {
        let turn = lock(&self.turn);
        self.flags.fetch_or(HELD, Ordering::Relaxed);
        Held { biased: self, _turn: turn }
    }
}

impl<T> Entered<'_, T> {
    /// The value.
    #[inline(always)]
    pub(crate) fn get(&mut self) -> &mut T {
        // SAFETY: we are the owner, who is inside once; nobody else gets the value until we leave.
        unsafe { &mut *self.biased.value.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Pairs with those who look whether we are inside.
        store_as_owner(&self.biased.busy, false, Access::Leave.ordering());
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Pairs with the owner's entering. Before the mutex is freed, by the order of drops.
        self.biased.flags.fetch_and(!HELD, Access::GiveBack.ordering());
    }
}

#[cfg(all(test, not(esatto_loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_owner_is_inside_once() {
        let biased = Biased::new(5);
        // SAFETY: one thread.
        let mut entered = unsafe { biased.enter() }.unwrap();
        *entered.get() += 1;
        // SAFETY: as above.
        assert!(unsafe { biased.enter() }.is_none());
        drop(entered);
        // SAFETY: as above.
        assert_eq!(*unsafe { biased.enter() }.unwrap().get(), 6);
    }

    #[test]
    fn others_get_it_only_while_the_owner_is_elsewhere() {
        let biased = Biased::new(1);
        let mut seen = Vec::new();
        // SAFETY: one thread enters.
        let entered = unsafe { biased.enter() }.unwrap();
        Biased::hold_all([&biased].into_iter(), |v| seen.push(*v));
        assert!(seen.is_empty());
        drop(entered);
        Biased::hold_all([&biased].into_iter(), |v| {
            *v += 1;
            seen.push(*v);
        });
        assert_eq!(seen, [2]);
        // SAFETY: one thread enters.
        assert_eq!(*unsafe { biased.enter() }.unwrap().get(), 2);
    }

    #[test]
    fn nobody_is_ever_together() {
        race(200_000);
    }

    /// In a process of its own, of which nobody asks for a barrier again.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_lost_barrier_leaves_values_to_owners_that_do_not_know() {
        const CHILD: &str = "ESATTO_TEST_WITHOUT_MEMBARRIER";
        if std::env::var_os(CHILD).is_none() {
            let name = "sys::biased::tests::a_lost_barrier_leaves_values_to_owners_that_do_not_know";
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let biased = Biased::new(1);
        let holds = |biased: &Biased<u32>| {
            let mut holds = false;
            Biased::hold_all([biased].into_iter(), |_| holds = true);
            holds
        };
        assert!(holds(&biased), "the system has a barrier");
        crate::sys::filter::lose_membarrier();
        for _ in 0..3 {
            assert!(!holds(&biased), "its owner may be inside, and nobody can see that");
        }
        for _ in 0..2 {
            // SAFETY: one thread.
            drop(unsafe { biased.enter() });
            assert!(holds(&biased), "its owner makes barriers now");
        }
        assert!(holds(&Biased::new(2)), "that of a thread which began later");
        race(200_000);
    }

    fn race(rounds: usize) {
        // Two numbers that are equal whenever nobody is in between.
        let biased = Arc::new(Biased::new((0_usize, 0_usize)));
        let held = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    // SAFETY: only this thread enters.
                    let mut entered = unsafe { biased.enter() }.unwrap();
                    let (a, b) = entered.get();
                    *a += 1;
                    assert_eq!(*a, *b + 1);
                    *b += 1;
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds / 100 {
                        Biased::hold_all([&*biased].into_iter(), |(a, b)| {
                            assert_eq!(a, b);
                            *a += 1;
                            *b += 1;
                            held.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        // SAFETY: the thread that entered is gone.
        let total = *unsafe { biased.enter() }.unwrap().get();
        assert_eq!(total.0, rounds + held.load(Ordering::Relaxed));
    }
}
