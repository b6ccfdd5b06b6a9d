//! Lock that costs its owner next to nothing.
//!
//! The value belongs to one thread, which enters and leaves millions of times a second. Once in a
//! while another thread wants the value, if the owner is not inside. An ordinary lock would cost
//! the owner two atomic read-modify-write operations each time. Here the owner makes two plain
//! stores and a load:
//!
//! ```text
//! owner                          another thread
//!   busy := true                   held := true
//!   (nothing)                      barrier on all processors that run this process
//!   held? ─ no ─► inside           busy? ─ no ─► has the value
//!   …                              …
//!   busy := false                  held := false
//! ```
//!
//! At least one of the two sees the other. This is Dekker's algorithm: on both sides, the store
//! must be visible before the later load. The other thread pays for both sides with `membarrier`, a
//! barrier on every processor (Linux ≥ 4.14). If the system has no `membarrier`, the flag
//! [`FENCED`] is always set, and the owner itself makes a barrier.
//!
//! A system can lose `membarrier` while the process runs, when the process installs a filter of
//! system calls (seccomp). Then the other thread sets [`FENCED`]. It leaves the value to the owner
//! until the owner has answered, in [`LockWords::fences`], that it makes a barrier each time it
//! enters.

mod barrier;
#[cfg(all(test, any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
#[path = "../../tests/seccomp/mod.rs"]
mod seccomp;

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering;

use crate::orderings::Access;
use crate::sync::{AtomicBool, AtomicU8, Mutex, MutexGuard, fence, lock};
use barrier::{barrier_everywhere, has_barrier, load_as_other, load_as_owner, store_as_owner};

/// Flag: another thread has the value, or tries to get it.
const HELD: u8 = 1;
/// Flag: the owner has to make a barrier itself.
const FENCED: u8 = 2;

/// Value of one thread that other threads can get while the owner is not inside.
#[derive(Debug)]
#[repr(C)]
pub struct BiasedLock<T> {
    /// First, so that a pointer to it is one to the lock.
    words: LockWords,
    value: UnsafeCell<T>,
}

/// The words of a [`BiasedLock`], without its value.
#[derive(Debug)]
pub(crate) struct LockWords {
    /// The owner is inside.
    busy: AtomicBool,
    /// [`HELD`] and [`FENCED`].
    flags: AtomicU8,
    /// The owner knows of [`FENCED`]: it makes a barrier each time it enters, and it made one when
    /// it set this.
    fences: AtomicBool,
    /// Locked by the other thread as long as [`HELD`] is set.
    turn: Mutex<()>,
}

// SAFETY: one thread at a time reaches the value: the owner between `enter` and the drop of its
// guard, or the thread that has a `Held` (see the head of the module). So `T` moves between
// threads, and is not shared.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// Guard of an owner that is inside. It stays on the owner's thread.
#[derive(Debug)]
pub struct Entered<'b, T> {
    lock: &'b BiasedLock<T>,
    _not_send: PhantomData<*const ()>,
}

/// Guard of another thread that has the value, or tries to get it.
#[derive(Debug)]
struct Held<'b, T> {
    lock: &'b BiasedLock<T>,
    _turn: MutexGuard<'b, ()>,
}

/// Registers this process for barriers on all its threads. Without this call, the first
/// [`BiasedLock`] does it.
pub fn register_barrier() {
    has_barrier();
}

impl<T> BiasedLock<T> {
    /// Makes a lock around a value. Its owner is the first thread that enters.
    pub fn new(value: T) -> Self {
        Self { words: LockWords::new(), value: UnsafeCell::new(value) }
    }

    /// Enters, as the owner. Returns `None` if the owner is already inside. Waits for another
    /// thread that has the value.
    ///
    /// # Safety
    ///
    /// Only one thread ever calls this.
    #[inline(always)]
    pub unsafe fn enter(&self) -> Option<Entered<'_, T>> {
        self.words.enter().then(|| self.guard())
    }

    /// Returns the guard of an owner that is inside and has forgotten its guard.
    ///
    /// # Safety
    ///
    /// The owner calls this. It has forgotten the guard of its last [`enter`](Self::enter), and
    /// every guard that this function returned since then.
    #[inline(always)]
    pub unsafe fn entered(&self) -> Entered<'_, T> {
        self.guard()
    }

    #[inline(always)]
    const fn guard(&self) -> Entered<'_, T> {
        Entered { lock: self, _not_send: PhantomData }
    }

    /// Takes hold of the values whose owners are not inside, and passes each to `f`. Leaves out the
    /// values of owners that have not entered since the system lost its barrier.
    ///
    /// `f` must not call this, and `all` must not have the value of an owner that calls this from
    /// inside: the call would wait for itself.
    pub fn hold_all<'b>(all: impl Iterator<Item = &'b Self>, mut f: impl FnMut(&mut T))
    where
        T: 'b,
    {
        let tried: Vec<Held<'b, T>> = all.map(Self::try_hold).collect();
        // One barrier for all: it may take microseconds.
        let is_everywhere = barrier_everywhere();
        for held in tried {
            let words = &held.lock.words;
            if !is_everywhere && !words.makes_barriers() {
                continue;
            }
            // Pairs with the owner's leaving.
            if !load_as_other(&words.busy, Access::LoadBusy.ordering()) {
                // SAFETY: HELD was set before the barrier. The barrier was also one for the owner:
                // the system made it there, or the owner makes its own. The owner is not inside
                // after the barrier. If it enters now, it sees HELD, and waits until `held` is
                // dropped. No other thread has a `Held`: it comes with the mutex.
                f(unsafe { &mut *held.lock.value.get() });
            }
        }
    }

    fn try_hold(&self) -> Held<'_, T> {
        let turn = lock(&self.words.turn);
        self.words.flags.fetch_or(HELD, Ordering::Relaxed);
        Held { lock: self, _turn: turn }
    }
}

impl LockWords {
    fn new() -> Self {
        let flags = if has_barrier() { 0 } else { FENCED };
        Self {
            busy: AtomicBool::new(false),
            flags: AtomicU8::new(flags),
            fences: AtomicBool::new(flags & FENCED != 0),
            turn: Mutex::new(()),
        }
    }

    /// Makes the words of a lock that no thread can enter.
    #[cfg(esatto_loom)]
    pub(crate) fn shut() -> Self {
        Self { busy: AtomicBool::new(true), ..Self::new() }
    }

    /// Makes the words of a lock that no thread can enter.
    #[cfg(not(esatto_loom))]
    pub(crate) const fn shut() -> Self {
        Self {
            busy: AtomicBool::new(true),
            flags: AtomicU8::new(0),
            fences: AtomicBool::new(false),
            turn: Mutex::new(()),
        }
    }

    /// Returns whether the owner is inside. Called by the owner.
    pub(crate) fn is_entered(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Enters, as the owner. Returns false if the owner is already inside.
    #[inline(always)]
    pub(crate) fn enter(&self) -> bool {
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        store_as_owner(&self.busy, true, Ordering::Relaxed);
        // Acquires the writes of another thread to the value, from before it gave the value back.
        if load_as_owner(&self.flags, Access::Enter.ordering()) != 0 {
            self.enter_slowly();
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn enter_slowly(&self) {
        loop {
            fence(Ordering::SeqCst);
            let flags = load_as_owner(&self.flags, Access::Enter.ordering());
            if flags & FENCED != 0 && !self.fences.load(Ordering::Relaxed) {
                // A thread that sees this sees that we are inside, unless we have left since.
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

    /// Returns whether the owner makes a barrier each time it enters. If the owner does not know
    /// yet that it has to, this tells it.
    fn makes_barriers(&self) -> bool {
        let knows = self.fences.load(Access::LoadFences.ordering());
        if !knows {
            self.flags.fetch_or(FENCED, Ordering::Relaxed);
        }
        knows
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread is the owner, and has one guard. No other thread gets the value until
        // the guard is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Pairs with the load of other threads that ask whether the owner is inside.
        store_as_owner(&self.lock.words.busy, false, Access::Leave.ordering());
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Pairs with the owner's entering. The mutex is freed afterwards, because fields are
        // dropped after this function.
        self.lock.words.flags.fetch_and(!HELD, Access::GiveBack.ordering());
    }
}

#[cfg(all(test, not(esatto_loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_owner_enters_once_at_a_time() {
        let lock = BiasedLock::new(5);
        // SAFETY: one thread.
        let mut entered = unsafe { lock.enter() }.unwrap();
        *entered += 1;
        // SAFETY: as above.
        assert!(unsafe { lock.enter() }.is_none());
        drop(entered);
        // SAFETY: as above.
        assert_eq!(*unsafe { lock.enter() }.unwrap(), 6);
    }

    #[test]
    fn other_threads_get_the_value_only_while_the_owner_is_outside() {
        let lock = BiasedLock::new(1);
        let mut seen = Vec::new();
        // SAFETY: one thread enters.
        let entered = unsafe { lock.enter() }.unwrap();
        BiasedLock::hold_all([&lock].into_iter(), |v| seen.push(*v));
        assert!(seen.is_empty());
        drop(entered);
        BiasedLock::hold_all([&lock].into_iter(), |v| {
            *v += 1;
            seen.push(*v);
        });
        assert_eq!(seen, [2]);
        // SAFETY: one thread enters.
        assert_eq!(*unsafe { lock.enter() }.unwrap(), 2);
    }

    #[test]
    fn two_threads_never_have_the_value_together() {
        race(200_000);
    }

    /// Runs in a separate process, because the barrier is lost for good.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn after_a_lost_barrier_only_owners_that_make_barriers_are_held() {
        const CHILD: &str = "ESATTO_TEST_WITHOUT_MEMBARRIER";
        if std::env::var_os(CHILD).is_none() {
            let name = "biased_lock::tests::after_a_lost_barrier_only_owners_that_make_barriers_are_held";
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child ran another test");
            return;
        }
        let lock = BiasedLock::new(1);
        let holds = |lock: &BiasedLock<u32>| {
            let mut holds = false;
            BiasedLock::hold_all([lock].into_iter(), |_| holds = true);
            holds
        };
        assert!(holds(&lock), "the system has a barrier");
        seccomp::lose_membarrier();
        for _ in 0..3 {
            assert!(!holds(&lock), "the owner may be inside, unseen");
        }
        for _ in 0..2 {
            // SAFETY: one thread.
            drop(unsafe { lock.enter() });
            assert!(holds(&lock), "the owner makes barriers now");
        }
        assert!(holds(&BiasedLock::new(2)), "a lock that was made later");
        race(200_000);
    }

    fn race(rounds: usize) {
        // Two numbers that are equal whenever no thread is changing them.
        let lock = Arc::new(BiasedLock::new((0_usize, 0_usize)));
        let held = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    // SAFETY: only this thread enters.
                    let mut entered = unsafe { lock.enter() }.unwrap();
                    let (a, b) = &mut *entered;
                    *a += 1;
                    assert_eq!(*a, *b + 1);
                    *b += 1;
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds / 100 {
                        BiasedLock::hold_all([&*lock].into_iter(), |(a, b)| {
                            assert_eq!(a, b);
                            *a += 1;
                            *b += 1;
                            held.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        // SAFETY: the thread that entered has ended.
        let total = *unsafe { lock.enter() }.unwrap();
        assert_eq!(total.0, rounds + held.load(Ordering::Relaxed));
    }
}
