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
use crate::thread_gate::{Closed, Gate};
use crate::{clock, diagnostics, interceptor, name, track_uuid};

/// Everything that is locked while the process forks. Dropped from top to bottom.
struct Held {
    threads: HeldThreads<Threads>,
    registry: registry::Held,
    sources: data_source::HeldSources,
    _others: Vec<Box<dyn Locked>>,
    pause: Pause,
    _closed: Closed,
}

thread_local! {
    /// From before until after the fork, which are on one thread on both sides.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has the system tell of forks from now on.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Now, for what is half initialised in a fork stays so in the child.
        process_info::ask_command_line();
        esatto_instances::register_barrier();
        os::fork::watch(before, after_in_parent, after_in_child);
    });
}

fn before() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(Held::lock()));
}

impl Held {
    /// None of these is ever taken by whom has another of them, but for what the pause keeps, and for statics.
    fn lock() -> Self {
        let closed = Gate::close();
        let pause = connection::pause();
        let others: Vec<Box<dyn Locked>> = vec![
            // First: who registers a data source, which is such a static, takes the list of data sources then.
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
    Generation::advance();
    held.pause.forget_thread();
    os::fork::copy_memory();
    os::fork::close_descriptors();
    held.threads.forget();
    held.registry.forget_instances();
    held.sources.forget_instances();
    track_uuid::forget_process();
    process_info::forget_tid();
    drop(held);
    os::fork::tell_child();
}
