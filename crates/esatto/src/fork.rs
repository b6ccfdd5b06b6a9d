//! What becomes of tracing in the child of a `fork`.
//!
//! A child has the memory of its parent, and one thread: that which called `fork`. The connection and the shared memory belong to the
//! parent, and there is no control thread. So in the child tracing is *off*, as before it was initialised: every category, every data
//! source, every session. Nothing of the parent's is written to or answered, and the copies of its sockets are closed, so that services
//! notice when it ends. A child that wants to be traced connects anew ([`Builder::start`](crate::Builder::start)); it appears as
//! the process it is.
//!
//! The parent notices nothing. To have nothing half done in the copy, the control thread rests during the fork, and the forking thread holds
//! every lock that is the whole process's. A lock that another thread holds just then on a single instance is lost in the child, and its slot
//! with it: there are eight.
//!
//! `fork` must not be called from inside of a trace point; the child's part of it is lost.

use core::cell::RefCell;
use std::sync::Once;

use crate::control::{self, Pause};
use crate::sys;
use crate::track::announcement;
use crate::{category, data_source, ids, name, process, registry};

/// Everything that is locked while the process forks. Dropped from top to bottom.
struct Held {
    threads: sys::threads::ForkGuard,
    names: name::ForkGuard,
    announcements: announcement::ForkGuard,
    registry: registry::ForkGuard,
    dynamic: category::ForkGuard,
    sources: data_source::ForkGuard,
    pause: Pause,
}

thread_local! {
    /// From before until after the fork, which are on one thread on both sides.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has the system tell of forks from now on.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| sys::fork::watch(before, after_in_parent, after_in_child));
}

/// In the order in which these locks are ever taken inside of each other.
fn before() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(Held::lock()));
}

impl Held {
    fn lock() -> Self {
        let pause = control::pause();
        let sources = data_source::lock_for_fork();
        let dynamic = category::lock_for_fork();
        let registry = registry::lock_for_fork();
        let announcements = announcement::lock_for_fork();
        let names = name::lock_for_fork();
        let threads = sys::threads::lock_for_fork();
        Self { threads, names, announcements, registry, dynamic, sources, pause }
    }
}

fn take() -> Option<Held> {
    HELD.try_with(|held| held.borrow_mut().take()).ok().flatten()
}

fn after_in_parent() {
    drop(take());
}

fn after_in_child() {
    let Some(mut held) = take() else { return };
    held.pause.forget_thread();
    sys::fork::close_descriptors();
    held.threads.abandon();
    held.registry.forget_instances();
    held.sources.forget_instances();
    ids::forget_process();
    process::forget_system_pid();
    // The rest is as good in the child as in the parent.
    let Held { threads, names, announcements, registry, dynamic, sources, pause } = held;
    drop((threads, names, announcements, registry, dynamic, sources, pause));
}
