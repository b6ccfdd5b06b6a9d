//! Models of trace points that consist of several calls, between which the thread stays in its
//! state. The module [`biased_lock`](crate::biased_lock) checks the lock for this.

use esatto_instances::ThreadTable as _;
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, Threads, flush_all, trace_in_steps};

fn beside(leaves: bool, control_does: fn(&mut Control)) {
    let mut control = Control::new();
    control.record(1, &CATEGORY);
    let tracing = thread::spawn(move || {
        let recorded = trace_in_steps(&CATEGORY, [1, 2], leaves);
        Threads::end_thread();
        recorded
    });
    control_does(&mut control);
    let recorded = tracing.join().unwrap();
    assert!(recorded, "the instance is there all the time");
    assert_eq!(control.finish(1), [1 | FRESH, 2]);
}

pub(crate) fn a_flush_leaves_them_alone() {
    check(3, || beside(true, |_| flush_all()));
}

pub(crate) fn the_end_of_the_thread_ends_them() {
    check(3, || beside(false, |_| flush_all()));
}
