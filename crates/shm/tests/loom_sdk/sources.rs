//! Custom data sources, whose writers each thread keeps as well.

use loom::thread;

use crate::check;
use crate::data_source::{DataSource, Source};
use crate::instance;
use crate::stand_ins::Control;

use crate::sys::threads;

struct Nothing;

impl DataSource for Nothing {
    type ThreadState = ();
    type IncrementalState = ();
}

loom::lazy_static! {
    static ref SOURCE: Source<Nothing> = Source::new();
}

/// A thread has seen that an instance records, and is late: another one was set up in its slot.
pub(crate) fn an_instance_that_has_not_started_gets_nothing() {
    check(2, || {
        let control = Control::new();
        let first = SOURCE.set_up(control.destination(1));
        SOURCE.start(first);
        let tracing = thread::spawn(|| {
            SOURCE.trace(1);
            threads::end();
        });
        SOURCE.end(first);
        SOURCE.set_up(control.destination(2));
        tracing.join().unwrap();
        assert_eq!(control.finish(2), [0; 0]);
    });
}

/// The count of those that have ended says that there is something to give back; who has looked once does not look again.
pub(crate) fn a_thread_that_has_heard_of_an_end_has_no_writer_of_it() {
    check(2, || {
        let control = Control::new();
        let ticket = SOURCE.set_up(control.destination(1));
        SOURCE.start(ticket);
        let tracing = thread::spawn(|| {
            SOURCE.trace(1);
            let stale = threads::with(|thread| {
                let before = instance::generation();
                let writers = thread.sources();
                before != 0 && writers.len() != 0
            });
            threads::end();
            stale.unwrap_or(false)
        });
        SOURCE.end(ticket);
        assert!(!tracing.join().unwrap(), "a chunk is kept");
        control.finish(1);
    });
}

/// A stop is completed late, when the control thread has ended the instance already and another one
/// is in its slot.
pub(crate) fn a_late_stop_does_not_close_the_next_instance() {
    check(2, || {
        let control = Control::new();
        let first = SOURCE.set_up(control.destination(1));
        SOURCE.start(first);
        let completing = thread::spawn(move || SOURCE.close(first));
        SOURCE.end(first);
        let second = SOURCE.set_up(control.destination(1));
        SOURCE.start(second);
        completing.join().unwrap();
        assert!(SOURCE.has_started(second.slot));
        SOURCE.end(second);
        control.finish(1);
    });
}
