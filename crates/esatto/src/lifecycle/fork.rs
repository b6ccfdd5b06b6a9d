//! Turns tracing off in the child of a `fork`, and keeps the parent as it is.
//!
//! A child has the memory of its parent and one thread: the one that called `fork`. The connection
//! and the shared memory belong to the parent, and there is no control thread. So tracing is *off*
//! in the child, as before it was initialised: every category, every data source, every session.
//! The child writes to nothing of the parent and answers nothing for it. It closes its copies of
//! the parent's sockets, so that services notice when the parent ends. A child that wants to be
//! traced connects again ([`Builder::start`](crate::Builder::start)). It then appears as the
//! process it is. A child that reaches trace points that the parent recorded, and does not connect,
//! says at its exit that they were not recorded.
//!
//! The parent notices nothing. To leave nothing half done in the copy, the control thread rests
//! during the fork. The forking thread holds every lock that exists once per process. Locks that
//! exist once per data source instance, session, connection or writer are not held: the child does
//! not touch their data, which leaks. Signal handlers that run meanwhile cannot trace.
//!
//! If a thread forks inside a trace point, the child loses its part of it: it writes to a copy of
//! the memory. A child that is made in another way (`vfork`, a bare `clone`) must call `exec`, as
//! all such children must.

use core::cell::RefCell;
use std::sync::Once;

use esatto_instances::{HeldThreads, ThreadGate as _, ThreadTable as _};

use crate::category::{self, registry};
use crate::connection::{self, Pause};
use crate::data_source::{self, session_observer};
use crate::event::track::announcement;
use crate::os::fork::{Generation, Locked};
use crate::os::{self, process_info};
use crate::record::Threads;
use crate::trace_point_gate::{Closed, Gate};
use crate::{clock, diagnostics, interceptor, name, start_times, track_uuid};

/// All locks that are held while the process forks. Dropped from top to bottom.
struct Held {
    threads: HeldThreads<Threads>,
    registry: registry::Held,
    sources: data_source::HeldSources,
    _others: Vec<Box<dyn Locked>>,
    _pause: Pause,
    _closed: Closed,
}

thread_local! {
    /// From before the fork until after it. Both ends are on the same thread, in the parent and in
    /// the child.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Registers the functions that the system calls around forks.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Done now, because an initialisation that a fork interrupts would stay incomplete in the
        // child.
        process_info::ask_command_line();
        esatto_instances::register_barrier();
        os::fork::watch(before, after_in_parent, after_in_child);
    });
}

/// Tells the user, when a forked process exits, that it traced in vain.
pub(crate) fn watch_missed() {
    os::exit::at_exit(|| {
        if registry::take_missed() {
            let what = format!("the forked process {} is not recorded, although its parent was", std::process::id());
            let remedy = "call `Tracing::builder()…start()` after the fork, or in C `esatto_init`";
            diagnostics::say_once_in_child(&format!("{what}: {remedy}"));
        }
    });
}

fn before() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(Held::lock()));
}

impl Held {
    /// Takes the locks. Lock order: no thread takes one of these locks while it holds another,
    /// except those that the pause holds, and those in statics.
    fn lock() -> Self {
        let closed = Gate::close();
        let pause = connection::pause();
        let others: Vec<Box<dyn Locked>> = vec![
            // First: a thread that registers a data source holds such a static lock when it takes
            // the list of data sources.
            Box::new(os::fork::hold_for_fork()),
            Box::new(category::hold_for_fork()),
            Box::new(announcement::hold_for_fork()),
            Box::new(name::hold_for_fork()),
            Box::new(session_observer::hold_for_fork()),
            Box::new(interceptor::hold_for_fork()),
            Box::new(diagnostics::hold_for_fork()),
            Box::new(clock::hold_for_fork()),
            Box::new(os::exit::hold_for_fork()),
        ];
        Self {
            sources: data_source::hold_for_fork(),
            registry: registry::hold_for_fork(),
            threads: Threads::hold_for_fork(),
            _others: others,
            _pause: pause,
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
    Generation::advance();
    connection::forget_thread();
    os::fork::copy_memory();
    os::fork::close_descriptors();
    held.threads.forget();
    held.registry.forget_instances();
    held.sources.forget_instances();
    track_uuid::forget_process();
    process_info::forget_tid();
    start_times::forget();
    drop(held);
    os::fork::tell_child();
}
