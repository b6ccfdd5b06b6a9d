//! The state of each thread that traces, found by the thread itself in a nanosecond, and by others in a list.
//!
//! # Signals
//!
//! A signal handler may interrupt its thread anywhere, and trace. What it interrupts may have locked what the trace point needs, and waits for it
//! in vain. So a thread holds locks that trace points take in one of two situations only, in both of which trace points do nothing: inside of a trace point
//! ([`with`]), or while it is [`Closed`]. Threads of this crate hold them at other times, too, and get no signals (`os/signals.rs`).

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use core::sync::atomic::{Ordering, compiler_fence};
use core::{mem, ptr};
use std::sync::Arc;

use super::biased::Biased;
use crate::order::Rule;
use crate::sync::{Mutex, MutexGuard, local, lock, shared};
use crate::thread::Thread;

type Slot = Biased<Thread>;

shared! {
    /// All threads that have traced and not ended.
    static THREADS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
}

local! {
    /// The state of this thread; null before its first trace point. Without destructor, so that it can be read at any time.
    static SLOT: Cell<*const Slot> = Cell::new(ptr::null());
}

local! {
    /// Keeps the state, and ends it with the thread.
    static OWNER: RefCell<Option<Owner>> = RefCell::new(None);
}

local! {
    /// How many [`Closed`] this thread has.
    static CLOSED: Cell<u32> = Cell::new(0);
}

local! {
    /// Where `SLOT` pointed before the first of them.
    static BEHIND: Cell<*const Slot> = Cell::new(ptr::null());
}

struct Owner(Arc<Slot>);

shared! {
    /// The slot of threads that have ended or are closed: nobody can enter it.
    static SHUT: Slot = Slot::busy_for_ever(Thread::new());
}

#[inline(always)]
fn shut() -> *const Slot {
    let slot: &Slot = &SHUT;
    slot
}

/// As long as this exists trace points of the calling thread do nothing: those of signal handlers, to which it may have come. Cheap; may be nested.
#[derive(Debug)]
pub(crate) struct Closed {
    /// Of one thread.
    _not_send: PhantomData<*const ()>,
}

pub(crate) fn close() -> Closed {
    let depth = CLOSED.with(Cell::get);
    // A handler that comes now or later finds that it is not the first, and changes nothing.
    CLOSED.with(|cell| cell.set(depth + 1));
    compiler_fence(Ordering::SeqCst);
    if depth == 0 {
        BEHIND.with(|cell| cell.set(SLOT.with(Cell::get)));
        SLOT.with(|cell| cell.set(shut()));
    }
    compiler_fence(Ordering::SeqCst);
    Closed { _not_send: PhantomData }
}

impl Drop for Closed {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let depth = CLOSED.with(Cell::get);
        if depth == 1 {
            SLOT.with(|cell| cell.set(BEHIND.with(Cell::get)));
        }
        compiler_fence(Ordering::SeqCst);
        CLOSED.with(|cell| cell.set(depth - 1));
    }
}

/// Whether the calling thread has a [`Closed`].
pub(crate) fn is_closed() -> bool {
    CLOSED.with(Cell::get) != 0
}

/// Whether a trace point of this thread would do something, as far as that is up to the thread.
pub(crate) fn is_open() -> bool {
    let slot = SLOT.with(Cell::get);
    if slot.is_null() {
        return CLOSED.with(Cell::get) == 0;
    }
    // SAFETY: as in `with`.
    !unsafe { &*slot }.is_entered()
}

/// Runs `f` with the state of this thread. `None` from inside of `f` (a trace point in a trace point), and when the thread has
/// destroyed its state already (a trace point in the destructor of a thread-local).
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    struct Closure<F>(F);
    impl<R, F: FnOnce(&mut Thread) -> R> Inside for Closure<F> {
        type Result = R;
        #[inline(always)]
        fn run(self, thread: &mut Thread) -> R {
            self.0(thread)
        }
    }
    run(Closure(f))
}

local! {
    /// This thread is inside of its state since [`stay`], and nobody uses it right now.
    static STAYS: Cell<bool> = Cell::new(false);
}

/// Enters the state of this thread and stays inside until [`leave`]: for trace points that consist of several calls. `false` if
/// [`with`] would do nothing.
pub(crate) fn stay() -> bool {
    let mut slot = SLOT.with(Cell::get);
    if slot.is_null() {
        slot = begin();
    }
    // SAFETY: as in `run`.
    let slot = unsafe { &*slot };
    // SAFETY: as in `run`.
    let entered = unsafe { slot.enter() }.map(mem::forget);
    if entered.is_some() {
        STAYS.with(|stays| stays.set(true));
    }
    entered.is_some()
}

/// Runs `f` with the state that this thread stays in. `None` if it does not, or from inside of `f`.
#[inline(always)]
pub(crate) fn with_stayed<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    /// Also if `f` panics.
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            STAYS.with(|stays| stays.set(true));
        }
    }
    if !STAYS.with(|stays| stays.replace(false)) {
        return None;
    }
    let _back = Back;
    let slot = SLOT.with(Cell::get);
    // SAFETY: not null since `stay`, and otherwise as in `run`.
    let mut entered = mem::ManuallyDrop::new(unsafe { (*slot).entered() });
    Some(f(entered.get()))
}

/// Ends what [`stay`] began; nothing happens if it did not.
pub(crate) fn leave() {
    if STAYS.with(|stays| stays.replace(false)) {
        // SAFETY: as in `with_stayed`; this guard is dropped.
        drop(unsafe { (*SLOT.with(Cell::get)).entered() });
    }
}

/// Something to do with the state of a thread: a closure whose inlining can be asked for.
pub(crate) trait Inside {
    type Result;

    fn run(self, thread: &mut Thread) -> Self::Result;
}

/// As [`with`].
#[inline(always)]
pub(crate) fn run<I: Inside>(inside: I) -> Option<I::Result> {
    let mut slot = SLOT.with(Cell::get);
    if slot.is_null() {
        slot = begin();
    }
    // SAFETY: points into the `Arc` that `OWNER` keeps, until that is dropped, which sets `SLOT` to a static one.
    let slot = unsafe { &*slot };
    // SAFETY: `SLOT` is a thread-local that only this thread reads. The static one is never entered: it is busy.
    let mut entered = unsafe { slot.enter() }?;
    Some(inside.run(entered.get()))
}

/// Runs `f` with the state of every thread that is not inside of a trace point, which has to wait meanwhile if it comes to one.
/// Trace points inside of `f` do nothing. From inside of a trace point this does nothing.
pub(crate) fn for_each_idle(mut f: impl FnMut(&mut Thread)) {
    // This thread is inside of its own state all the time: if `f` runs foreign code, and that traces, nobody waits for himself.
    let all = with(|own| {
        let own_slot = SLOT.with(Cell::get);
        f(own);
        hold_others(own_slot, &mut f);
    });
    // A thread whose state has ended, as the main one's has when the process exits, has none to be inside of, and cannot trace.
    if all.is_none() && ptr::eq(SLOT.with(Cell::get), shut()) {
        hold_others(shut(), &mut f);
    }
}

fn hold_others(own: *const Slot, f: &mut impl FnMut(&mut Thread)) {
    let all = threads().clone();
    Slot::hold_all(all.iter().map(|slot| &**slot).filter(|slot| !ptr::eq(*slot, own)), f);
}

/// The first trace point of a thread.
#[cold]
#[inline(never)]
fn begin() -> *const Slot {
    if CLOSED.with(Cell::get) != 0 {
        return shut();
    }
    // Trace points of handlers come here, too, until there is a slot.
    CLOSED.with(|cell| cell.set(1));
    compiler_fence(Ordering::SeqCst);
    let slot = Arc::new(Slot::new(Thread::new()));
    // Fails where the thread-locals of this thread are being destroyed.
    let address = OWNER.try_with(|owner| {
        threads().push(Arc::clone(&slot));
        Arc::as_ptr(&owner.borrow_mut().insert(Owner(slot)).0)
    });
    let address = address.unwrap_or_else(|_| shut());
    SLOT.with(|cell| cell.set(address));
    compiler_fence(Ordering::SeqCst);
    CLOSED.with(|cell| cell.set(0));
    address
}

/// The list of threads, locked while the process forks.
pub(crate) struct Held(MutexGuard<'static, Vec<Arc<Slot>>>);

pub(crate) fn hold_for_fork() -> Held {
    Held(threads())
}

impl Held {
    /// In the child, where this thread is still [`Closed`]: all threads are gone, and this one, whose writers write into memory of the parent, starts anew. Nothing is dropped: that
    /// would hand over the parent's chunks.
    pub(crate) fn abandon(&mut self) {
        mem::forget(mem::take(&mut *self.0));
        let _ = OWNER.try_with(|owner| mem::forget(owner.take()));
        BEHIND.with(|cell| cell.set(ptr::null()));
        STAYS.with(|stays| stays.set(false));
    }
}

/// What happens when the calling thread ends, for models: they have no end of a thread that somebody could wait for.
#[cfg(esatto_loom)]
pub(crate) fn end() {
    drop(OWNER.with(|owner| owner.take()));
}

fn threads() -> MutexGuard<'static, Vec<Arc<Slot>>> {
    lock(&THREADS)
}

impl Drop for Owner {
    fn drop(&mut self) {
        // From here on trace points of this thread do nothing.
        SLOT.with(|cell| cell.set(shut()));
        if STAYS.with(|stays| stays.replace(false)) {
            // A trace point of several calls that was never left ends here.
            // SAFETY: as in `leave`: this thread is inside, and nobody uses its state right now.
            drop(unsafe { self.0.entered() });
        }
        threads().retain(|slot| !Arc::ptr_eq(slot, &self.0));
        // SAFETY: this thread is the owner.
        if let Some(mut entered) = unsafe { self.0.enter() }.filter(|_| Rule::EndInPerson.is_kept()) {
            // Returns the chunks. Not by the drop of the last `Arc`, which somebody who goes through the list may have.
            entered.get().end();
        }
    }
}
