//! The state of each thread that traces, found by the thread itself in a nanosecond, and by others in a list.

use core::cell::{Cell, RefCell};
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

struct Owner(Arc<Slot>);

/// Runs `f` with the state of this thread. `None` from inside of `f` (a trace point in a trace point), and when the thread has
/// destroyed its state already (a trace point in the destructor of a thread-local).
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    let mut slot = SLOT.with(Cell::get);
    if slot.is_null() {
        slot = begin();
    }
    // SAFETY: points into the `Arc` that `OWNER` keeps, until that is dropped, which sets `SLOT` to the slot of ended threads, which is static.
    let slot = unsafe { &*slot };
    // SAFETY: `SLOT` is a thread-local that only this thread reads. The slot of ended threads is never entered: it is busy.
    let mut entered = unsafe { slot.enter() }?;
    Some(f(entered.get()))
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
    if all.is_none() && ptr::eq(SLOT.with(Cell::get), ended()) {
        hold_others(ended(), &mut f);
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
    let slot = Arc::new(Slot::new(Thread::new()));
    // Fails where the thread-locals of this thread are being destroyed.
    let address = OWNER.try_with(|owner| {
        threads().push(Arc::clone(&slot));
        Arc::as_ptr(&owner.borrow_mut().insert(Owner(slot)).0)
    });
    let address = address.unwrap_or_else(|_| ended());
    SLOT.with(|slot| slot.set(address));
    address
}

/// The slot of threads that have ended: nobody can enter it.
fn ended() -> *const Slot {
    shared! {
        lazy ENDED: Slot = Slot::busy_for_ever(Thread::new());
    }
    ptr::from_ref(&*ENDED)
}

/// The list of threads, locked while the process forks.
pub(crate) struct ForkGuard(MutexGuard<'static, Vec<Arc<Slot>>>);

pub(crate) fn lock_for_fork() -> ForkGuard {
    ForkGuard(threads())
}

impl ForkGuard {
    /// In the child: all threads are gone, and this one, whose writers write into memory of the parent, starts anew. Nothing is dropped: that
    /// would hand over the parent's chunks.
    pub(crate) fn abandon(&mut self) {
        mem::forget(mem::take(&mut *self.0));
        let _ = OWNER.try_with(|owner| mem::forget(owner.take()));
        SLOT.with(|slot| slot.set(ptr::null()));
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
        SLOT.with(|slot| slot.set(ended()));
        threads().retain(|slot| !Arc::ptr_eq(slot, &self.0));
        // SAFETY: this thread is the owner.
        if let Some(mut entered) = unsafe { self.0.enter() }.filter(|_| Rule::EndInPerson.is_kept()) {
            // Returns the chunks. Not by the drop of the last `Arc`, which somebody who goes through the list may have.
            entered.get().end();
        }
    }
}
