//! Trace points that consist of several calls, between which the thread stays in its state. What that needs of the lock is in [`biased`](crate::biased).

use loom::thread;

use crate::check;
use crate::stand_ins::{CATEGORY, Control, FRESH, flush_all, trace_in_steps};
use crate::sys::threads;

fn beside(leaves: bool, control_does: fn(&mut Control)) {
    let mut control = Control::new();
    control.record(1, &CATEGORY);
    let tracing = thread::spawn(move || {
        let recorded = trace_in_steps(&CATEGORY, [1, 2], leaves);
        threads::end();
        recorded
    });
    control_does(&mut control);
    let recorded = tracing.join().unwrap();
    assert!(recorded, "the instance is there all the time");
    assert_eq!(control.finish(1), [1 | FRESH, 2]);
}

pub(crate) fn keeps_flushes_out() {
    check(3, || beside(true, |_| flush_all()));
}

pub(crate) fn ends_with_the_thread_at_the_latest() {
    check(3, || beside(false, |_| flush_all()));
}
