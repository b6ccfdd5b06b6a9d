//! Gate to the state of the calling thread, which can be closed.
//!
//! # Signals
//!
//! A signal handler may interrupt its thread anywhere, and trace. The interrupted code may hold a
//! lock that the trace point needs, and the trace point would wait for ever. So a thread holds
//! locks that trace points take in two situations only: inside of a trace point
//! ([`ThreadTable::enter`]), or while its gate is [`Closed`]. In both, trace points do nothing.
//!
//! An allocator that traces is another such handler. A thread of the SDK holds locks at most times,
//! so it is closed, and [opens](ThreadGate::open_for) for functions of the program only.
//!
//! [`ThreadTable::enter`]: crate::ThreadTable::enter

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::biased_lock::LockWords;
use crate::sync::shared_static;

/// Gate of each thread to its state in the one [`ThreadTable`](crate::ThreadTable) that has this
/// gate.
///
/// [`thread_gate!`](crate::thread_gate!) declares a type with this trait. The gate does not depend
/// on the sequences of the table, so code below them can close it.
///
/// # Safety
///
/// [`with_local`](Self::with_local) calls its function once, with a thread-local of the calling
/// thread that has no destructor, and returns the result. The thread-local belongs to this gate
/// alone.
pub unsafe trait ThreadGate: Sized + 'static {
    #[doc(hidden)]
    fn with_local<R>(f: impl FnOnce(&LocalCells) -> R) -> R;

    /// Closes the calling thread to trace points. Cheap; may be nested.
    #[must_use]
    fn close() -> Closed<Self> {
        Self::with_local(|local| {
            let depth = local.closed.get();
            // A signal handler that comes now or later finds that it is not the first, and changes
            // nothing.
            local.closed.set(depth + 1);
            compiler_fence(Ordering::SeqCst);
            if depth == 0 {
                local.reopened.set(local.slot.get());
                local.slot.set(shut());
            }
            compiler_fence(Ordering::SeqCst);
        });
        Closed { _gate: PhantomData, _not_send: PhantomData }
    }

    /// Runs `f` with the calling thread open, if there is one [`Closed`] of it. Its holder makes
    /// sure that the thread holds no lock that trace points take.
    fn open_for<R>(f: impl FnOnce() -> R) -> R {
        /// Closes the thread again, also if `f` panics.
        struct Open<G: ThreadGate>(PhantomData<G>);
        impl<G: ThreadGate> Drop for Open<G> {
            fn drop(&mut self) {
                mem::forget(G::close());
            }
        }
        if Self::with_local(|local| local.closed.get()) != 1 {
            return f();
        }
        drop(Closed::<Self> { _gate: PhantomData, _not_send: PhantomData });
        let _open = Open::<Self>(PhantomData);
        f()
    }

    /// Returns whether the calling thread is [`Closed`].
    #[must_use]
    fn is_closed() -> bool {
        Self::with_local(|local| local.closed.get() != 0)
    }

    /// Returns whether a trace point of the calling thread would do something.
    #[must_use]
    fn is_open() -> bool {
        let slot = Self::with_local(|local| local.slot.get());
        if slot.is_null() {
            return !Self::is_closed();
        }
        // SAFETY: as in `ThreadTable::enter`.
        !unsafe { &*slot }.is_entered()
    }
}

/// Declares a type with the trait [`ThreadGate`]: `thread_gate! { pub struct Gate; }`.
#[cfg(not(esatto_loom))]
#[macro_export]
macro_rules! thread_gate {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility enum $name {}

        const _: () = {
            ::std::thread_local! {
                static LOCAL: $crate::__private::LocalCells = const { $crate::__private::LocalCells::new() };
            }

            // SAFETY: a thread-local that nothing else can name. It has no destructor.
            #[allow(unsafe_code)]
            unsafe impl $crate::ThreadGate for $name {
                #[inline(always)]
                fn with_local<R>(f: impl FnOnce(&$crate::__private::LocalCells) -> R) -> R {
                    LOCAL.with(f)
                }
            }
        };
    };
}

/// Declares a type with the trait [`ThreadGate`], in a model.
#[cfg(esatto_loom)]
#[macro_export]
macro_rules! thread_gate {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility enum $name {}

        const _: () = {
            $crate::__private::loom::thread_local! {
                static LOCAL: $crate::__private::LocalCells = $crate::__private::LocalCells::new();
            }

            // SAFETY: a thread-local that nothing else can name. It has no destructor.
            unsafe impl $crate::ThreadGate for $name {
                fn with_local<R>(f: impl FnOnce(&$crate::__private::LocalCells) -> R) -> R {
                    LOCAL.with(f)
                }
            }
        };
    };
}

/// Thread-local part of a [`ThreadGate`]. It has no destructor, so that a thread can read it at any
/// time.
#[doc(hidden)]
#[derive(Debug)]
pub struct LocalCells {
    /// State of this thread, or [`shut`]; null before its first trace point.
    pub(crate) slot: Cell<*const LockWords>,
    /// Value that `slot` gets when the thread is no longer closed.
    pub(crate) reopened: Cell<*const LockWords>,
    /// Number of [`Closed`] that this thread has.
    pub(crate) closed: Cell<u32>,
    /// State that this thread [stays](crate::ThreadTable::stay) in; null while a call uses it.
    pub(crate) stayed: Cell<*const LockWords>,
}

impl LocalCells {
    #[expect(clippy::new_without_default, reason = "a thread-local")]
    pub const fn new() -> Self {
        Self {
            slot: Cell::new(ptr::null()),
            reopened: Cell::new(ptr::null()),
            closed: Cell::new(0),
            stayed: Cell::new(ptr::null()),
        }
    }
}

shared_static! {
    /// Slot of threads that have ended or are closed: no thread can enter it.
    static SHUT: LockWords = LockWords::shut();
}

/// Returns the slot of threads that have ended or are closed.
pub(crate) fn shut() -> *const LockWords {
    let words: &LockWords = &SHUT;
    words
}

/// Guard of a thread that is closed: as long as it exists, trace points of the thread do nothing,
/// also those of signal handlers that interrupt it.
pub struct Closed<G: ThreadGate> {
    _gate: PhantomData<G>,
    _not_send: PhantomData<*const ()>,
}

impl<G: ThreadGate> Drop for Closed<G> {
    fn drop(&mut self) {
        G::with_local(|local| {
            compiler_fence(Ordering::SeqCst);
            let depth = local.closed.get();
            if depth == 1 {
                local.slot.set(local.reopened.get());
            }
            compiler_fence(Ordering::SeqCst);
            local.closed.set(depth - 1);
        });
    }
}

impl<G: ThreadGate> fmt::Debug for Closed<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}
