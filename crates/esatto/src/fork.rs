//! What becomes of tracing in the child of a `fork`.
//!
//! A child has the memory of its parent, and one thread: that which called `fork`. The connection and the shared memory belong to the
//! parent, and there is no control thread. So in the child tracing is *off*, as before it was initialised: every category, every data
//! source, every session. Nothing of the parent's is written to or answered, and the copies of its sockets are closed, so that services
//! notice when it ends. A child that wants to be traced connects anew ([`Builder::start`](crate::Builder::start)); it appears as
//! the process it is.
//!
//! The parent notices nothing. To have nothing half done in the copy, the control thread rests during the fork, and the forking thread holds
//! every lock that is the whole process's: of what there is one for each data source instance, session, connection or writer, the child leaves all
//! alone, and it leaks. Signal handlers that come in between cannot trace.
//!
//! A child that is forked inside of a trace point has lost its part of it: what it still writes it writes to a copy of the memory. A child that is made in another way (`vfork`, a bare `clone`) must do
//! what such children do, which is `exec`.

mod static_mutex;

pub use static_mutex::{Guard, StaticMutex, StaticRwLock};

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;

use crate::control::{self, Pause};
use crate::sys::{self, threads};
use crate::track::announcement;
use crate::{category, clock, data_source, ids, interceptor, name, notice, observer, process, registry};

/// Everything that is locked while the process forks. Dropped from top to bottom.
struct Held {
    threads: threads::Held,
    registry: registry::Held,
    sources: data_source::HeldSources,
    _others: Vec<Box<dyn Locked>>,
    pause: Pause,
    _closed: threads::Closed,
}

/// What is as good in the child as in the parent.
trait Locked {}

impl<T> Locked for T {}

thread_local! {
    /// From before until after the fork, which are on one thread on both sides.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// How many forks, that were noticed, made this process out of another one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in. What waits for the control thread of a parent would do so for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    pub(crate) fn current() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is over.
    pub(crate) fn is_past(self) -> bool {
        self != Self::current()
    }
}

/// Has the system tell of forks from now on.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Now, for what is half initialised in a fork stays so in the child.
        process::ask_command_line();
        sys::ask_for_barrier();
        sys::fork::watch(before, after_in_parent, after_in_child);
    });
}

fn before() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(Held::lock()));
}

impl Held {
    /// None of these is ever taken by whom has another of them, but for what the pause keeps, and for statics.
    fn lock() -> Self {
        let closed = threads::close();
        let pause = control::pause();
        let others: Vec<Box<dyn Locked>> = vec![
            // First: who registers a data source, which is such a static, takes the list of data sources then.
            Box::new(static_mutex::hold_for_fork()),
            Box::new(category::hold_for_fork()),
            Box::new(announcement::hold_for_fork()),
            Box::new(name::hold_for_fork()),
            Box::new(observer::hold_for_fork()),
            Box::new(interceptor::hold_for_fork()),
            Box::new(notice::hold_for_fork()),
            Box::new(clock::hold_for_fork()),
            Box::new(sys::exit::hold_for_fork()),
            #[cfg(feature = "in-process")]
            Box::new(crate::to_file::hold_for_fork()),
        ];
        Self {
            sources: data_source::hold_for_fork(),
            registry: registry::hold_for_fork(),
            threads: threads::hold_for_fork(),
            _others: others,
            pause,
            _closed: closed,
        }
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
    GENERATION.fetch_add(1, Ordering::Relaxed);
    held.pause.forget_thread();
    sys::fork::copy_memory();
    sys::fork::close_descriptors();
    held.threads.abandon();
    held.registry.forget_instances();
    held.sources.forget_instances();
    ids::forget_process();
    process::forget_tid();
    drop(held);
    sys::fork::tell_child();
}
