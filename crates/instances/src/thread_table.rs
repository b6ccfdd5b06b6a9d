//! Table of the threads that have traced, and the state of each. The thread itself finds its state
//! in a nanosecond, through its [gate](crate::ThreadGate); other threads find it in a list.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{Ordering, compiler_fence};
use core::{mem, ptr};
use std::sync::Arc;

use crate::biased_lock::{BiasedLock, Entered, LockWords};
use crate::main_thread::is_main_thread;
use crate::orderings::Rule;
use crate::sync::{LocalKey, Mutex, MutexGuard, lock};
use crate::thread_gate::{ThreadGate, shut};
use crate::thread_state::ThreadState;
use crate::writer::Sequence;

/// Table of the threads that have traced and not ended, and the state of each.
///
/// [`thread_table!`](crate::thread_table!) declares a type with this trait: it makes the statics,
/// which cannot be generic.
///
/// # Safety
///
/// [`list`](Self::list) and [`owner`](Self::owner) always return the same static, which nothing
/// else uses.
pub unsafe trait ThreadTable: Sized + 'static {
    /// Packet sequence that a thread has for each instance.
    type Sequence: Sequence;

    /// Gate of each thread to its state.
    type Gate: GateOfTable<Table = Self>;

    #[doc(hidden)]
    fn list() -> &'static ThreadList<Self>;

    #[doc(hidden)]
    fn owner() -> &'static LocalKey<OwnerCell<Self>>;

    /// Enters the state of the calling thread; the thread is in a trace point until the guard is
    /// dropped.
    ///
    /// Returns `None` inside of a trace point, while the thread is [`Closed`](crate::Closed), and
    /// after the thread has destroyed its state (in destructors of thread-locals).
    #[inline(always)]
    #[must_use]
    fn enter() -> Option<Entered<'static, ThreadState<Self::Sequence>>> {
        let mut slot = Self::Gate::with_local(|local| local.slot.get());
        if slot.is_null() {
            slot = begin::<Self>();
        }
        // SAFETY: points to the shut one, which is static, or into the `Arc` that `Self::owner()`
        // keeps. When the owner is dropped, it replaces the pointer, and leaks the `Arc` if a guard
        // is left.
        if !unsafe { &*slot }.enter() {
            return None;
        }
        // SAFETY: the shut one cannot be entered. Any other belongs to this table: the only table
        // of the gate.
        let slot = unsafe { &*slot.cast::<Slot<Self>>() };
        // SAFETY: just entered. `slot` was in a thread-local, so this thread is the owner.
        Some(unsafe { slot.entered() })
    }

    /// Runs `f` with the state of the calling thread. Returns `None` if [`enter`](Self::enter)
    /// does.
    #[inline(always)]
    fn with<R>(f: impl FnOnce(&mut ThreadState<Self::Sequence>) -> R) -> Option<R> {
        Self::enter().map(|mut thread| f(&mut thread))
    }

    /// Enters the state of the calling thread and stays inside until [`leave`](Self::leave), for
    /// trace points that consist of several calls. Returns false if [`enter`](Self::enter) returns
    /// `None`.
    #[must_use]
    fn stay() -> bool {
        match Self::enter() {
            Some(entered) => {
                mem::forget(entered);
                Self::Gate::with_local(|local| local.stayed.set(local.slot.get()));
                true
            }
            None => false,
        }
    }

    /// Runs `f` with the state that this thread [stays](Self::stay) in. Returns `None` if the
    /// thread does not stay in it, or inside of `f`.
    #[inline(always)]
    fn with_stayed<R>(f: impl FnOnce(&mut ThreadState<Self::Sequence>) -> R) -> Option<R> {
        /// Says that no call uses the state any more, also if `f` panics.
        struct Unused<T: ThreadTable>(&'static Slot<T>);
        impl<T: ThreadTable> Drop for Unused<T> {
            fn drop(&mut self) {
                T::Gate::with_local(|local| local.stayed.set(ptr::from_ref(self.0).cast()));
            }
        }
        let slot = take_stayed::<Self>()?;
        let _unused = Unused::<Self>(slot);
        // SAFETY: this thread is inside of `slot` since `stay`, which forgot its guard. `stayed`
        // was set, so no other guard is in use.
        let mut entered = mem::ManuallyDrop::new(unsafe { slot.entered() });
        Some(f(&mut entered))
    }

    /// Leaves what [`stay`](Self::stay) entered; does nothing if the thread does not stay.
    fn leave() {
        if let Some(slot) = take_stayed::<Self>() {
            // SAFETY: as in `with_stayed`; this guard is dropped.
            drop(unsafe { slot.entered() });
        }
    }

    /// Runs `f` with the state of every thread that is not in a trace point. If one of these
    /// threads meanwhile comes to a trace point, it waits.
    ///
    /// Trace points inside of `f` do nothing. Inside of a trace point, this does nothing.
    fn for_each_idle(mut f: impl FnMut(&mut ThreadState<Self::Sequence>)) {
        // This thread is inside of its own state all the time. So if `f` runs foreign code that
        // traces, the thread does not wait for itself.
        let all = Self::with(|own| {
            let own_slot = Self::Gate::with_local(|local| local.slot.get());
            f(own);
            hold_others::<Self>(own_slot, &mut f);
        });
        // A thread whose state has ended, such as the main thread when the process exits, cannot
        // enter it, and cannot trace.
        if all.is_none() && ptr::eq(Self::Gate::with_local(|local| local.slot.get()), shut()) {
            hold_others::<Self>(shut(), &mut f);
        }
    }

    /// Locks the list of threads while the process forks.
    #[must_use]
    fn hold_for_fork() -> HeldThreads<Self> {
        HeldThreads(Self::list().lock())
    }

    /// Ends the state of the calling thread. Models call it, because they cannot wait for the
    /// destructors of a thread.
    #[cfg(esatto_loom)]
    fn end_thread() {
        drop(Self::owner().with(|owner| owner.0.take()));
    }
}

/// Gate that belongs to one table; [`thread_table!`](crate::thread_table!) implements it, so that
/// no second table can have the gate.
#[doc(hidden)]
pub trait GateOfTable: ThreadGate {
    type Table: ThreadTable;
}

/// Declares a type with the trait [`ThreadTable`], for a packet sequence and a
/// [gate](crate::ThreadGate): `thread_table! { pub struct Threads: MySequence, Gate; }`.
#[cfg(not(esatto_loom))]
#[macro_export]
macro_rules! thread_table {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident: $sequence:ty, $gate:ty;) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility enum $name {}

        const _: () = {
            static LIST: $crate::__private::ThreadList<$name> = $crate::__private::ThreadList::new();

            ::std::thread_local! {
                static OWNER: $crate::__private::OwnerCell<$name> = const { $crate::__private::OwnerCell::new() };
            }

            impl $crate::__private::GateOfTable for $gate {
                type Table = $name;
            }

            // SAFETY: two statics of this block, which nothing else can name.
            #[allow(unsafe_code)]
            unsafe impl $crate::ThreadTable for $name {
                type Sequence = $sequence;
                type Gate = $gate;

                fn list() -> &'static $crate::__private::ThreadList<Self> {
                    &LIST
                }

                fn owner() -> &'static ::std::thread::LocalKey<$crate::__private::OwnerCell<Self>> {
                    &OWNER
                }
            }
        };
    };
}

/// Declares a type with the trait [`ThreadTable`], in a model.
#[cfg(esatto_loom)]
#[macro_export]
macro_rules! thread_table {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident: $sequence:ty, $gate:ty;) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility enum $name {}

        const _: () = {
            $crate::__private::loom::lazy_static! {
                static ref LIST: $crate::__private::ThreadList<$name> = $crate::__private::ThreadList::new();
            }

            $crate::__private::loom::thread_local! {
                static OWNER: $crate::__private::OwnerCell<$name> = $crate::__private::OwnerCell::new();
            }

            impl $crate::__private::GateOfTable for $gate {
                type Table = $name;
            }

            // SAFETY: two statics of this block, which nothing else can name.
            unsafe impl $crate::ThreadTable for $name {
                type Sequence = $sequence;
                type Gate = $gate;

                fn list() -> &'static $crate::__private::ThreadList<Self> {
                    &LIST
                }

                fn owner() -> &'static $crate::__private::loom::thread::LocalKey<$crate::__private::OwnerCell<Self>> {
                    &OWNER
                }
            }
        };
    };
}

type Slot<T> = BiasedLock<ThreadState<<T as ThreadTable>::Sequence>>;

/// All threads that have traced and not ended.
#[doc(hidden)]
pub struct ThreadList<T: ThreadTable>(Mutex<Vec<Arc<Slot<T>>>>);

impl<T: ThreadTable> ThreadList<T> {
    #[cfg(not(esatto_loom))]
    #[expect(clippy::new_without_default, reason = "a static")]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    #[cfg(esatto_loom)]
    #[expect(clippy::new_without_default, reason = "a static")]
    pub fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&'static self) -> MutexGuard<'static, Vec<Arc<Slot<T>>>> {
        lock(&self.0)
    }
}

/// Thread-local that keeps the state of a thread, and ends it with the thread.
#[doc(hidden)]
pub struct OwnerCell<T: ThreadTable>(RefCell<Option<Owner<T>>>);

impl<T: ThreadTable> OwnerCell<T> {
    #[expect(clippy::new_without_default, reason = "a thread-local")]
    pub const fn new() -> Self {
        Self(RefCell::new(None))
    }
}

struct Owner<T: ThreadTable>(Arc<Slot<T>>);

/// Makes the state of a thread, at its first trace point.
#[cold]
#[inline(never)]
fn begin<T: ThreadTable>() -> *const LockWords {
    if T::Gate::is_closed() {
        return shut();
    }
    // Trace points of signal handlers also come here, until there is a slot.
    T::Gate::with_local(|local| local.closed.set(1));
    compiler_fence(Ordering::SeqCst);
    let slot = Arc::new(Slot::<T>::new(ThreadState::new()));
    // Fails while the thread-locals of this thread are being destroyed.
    let address = T::owner().try_with(|owner| {
        T::list().lock().push(Arc::clone(&slot));
        Arc::as_ptr(&owner.0.borrow_mut().insert(Owner(slot)).0).cast()
    });
    let address = address.unwrap_or_else(|_| shut());
    T::Gate::with_local(|local| {
        local.slot.set(address);
        compiler_fence(Ordering::SeqCst);
        local.closed.set(0);
    });
    address
}

/// Takes the slot that the calling thread stays in, if no call uses it.
#[inline(always)]
fn take_stayed<T: ThreadTable>() -> Option<&'static Slot<T>> {
    let slot = T::Gate::with_local(|local| local.stayed.replace(ptr::null()));
    // SAFETY: null, or a slot of this table that was entered. The owner clears it when it is
    // dropped.
    unsafe { slot.cast::<Slot<T>>().as_ref() }
}

fn hold_others<T: ThreadTable>(own: *const LockWords, f: &mut impl FnMut(&mut ThreadState<T::Sequence>)) {
    let all = T::list().lock().clone();
    let is_other = |slot: &&Slot<T>| !ptr::eq(ptr::from_ref(*slot).cast(), own);
    Slot::<T>::hold_all(all.iter().map(|slot| &**slot).filter(is_other), f);
}

impl<T: ThreadTable> Drop for Owner<T> {
    fn drop(&mut self) {
        if is_main_thread() {
            // The functions that a program has registered for its end run on this thread after
            // this, and may trace. The list has the state too, for the last flush.
            mem::forget(Arc::clone(&self.0));
            return;
        }
        // From here on, trace points of this thread do nothing.
        T::Gate::with_local(|local| {
            local.slot.set(shut());
            local.reopened.set(shut());
        });
        // Leaves a trace point of several calls that was never left.
        T::leave();
        T::list().lock().retain(|slot| !Arc::ptr_eq(slot, &self.0));
        // SAFETY: this thread is the owner.
        match unsafe { self.0.enter() } {
            // Returns the chunks here, because the last `Arc` may be dropped by a thread that goes
            // through the list.
            Some(mut thread) if Rule::ReturnChunksAtEnd.is_kept() => thread.end(),
            Some(_) => {}
            // A guard is left, which was leaked or is in another thread-local: it must not dangle.
            None => mem::forget(Arc::clone(&self.0)),
        }
    }
}

/// List of threads, locked while the process forks.
pub struct HeldThreads<T: ThreadTable>(MutexGuard<'static, Vec<Arc<Slot<T>>>>);

impl<T: ThreadTable> HeldThreads<T> {
    /// Forgets all threads, in the child of a fork, while this thread is still
    /// [`Closed`](crate::Closed).
    ///
    /// The other threads are gone. This one starts over, because its writers write into memory of
    /// the parent. Nothing is dropped: that would hand over the parent's chunks.
    pub fn forget(&mut self) {
        mem::forget(mem::take(&mut *self.0));
        let _ = T::owner().try_with(|owner| mem::forget(owner.0.take()));
        T::Gate::with_local(|local| {
            local.reopened.set(ptr::null());
            local.stayed.set(ptr::null());
        });
    }
}

impl<T: ThreadTable> fmt::Debug for ThreadList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadList")
    }
}

impl<T: ThreadTable> fmt::Debug for OwnerCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerCell")
    }
}

impl<T: ThreadTable> fmt::Debug for HeldThreads<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldThreads").field("count", &self.0.len()).finish()
    }
}
