//! Models of custom data sources, whose writers each thread also keeps.

use esatto_instances::{ThreadTable as _, ended_count};
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::custom_source::Source;
use crate::sequence::Threads;

loom::lazy_static! {
    static ref SOURCE: Source = Source::new();
}

/// A thread has seen that an instance records. Before it writes, another instance is set up in the
/// slot.
pub(crate) fn an_instance_that_has_not_started_gets_nothing() {
    check(2, || {
        let control = Control::new();
        let first = SOURCE.set_up(control.destination(1));
        SOURCE.start(first);
        let tracing = thread::spawn(|| {
            SOURCE.trace(1);
            Threads::end_thread();
        });
        SOURCE.end(first);
        SOURCE.set_up(control.destination(2));
        tracing.join().unwrap();
        assert_eq!(control.finish(2), [0; 0]);
    });
}

/// The count of ended instances says that there may be a writer to drop. A thread that has looked
/// once does not look again.
pub(crate) fn a_thread_that_knows_of_an_end_has_no_writer_left() {
    check(2, || {
        let control = Control::new();
        let ticket = SOURCE.set_up(control.destination(1));
        SOURCE.start(ticket);
        let tracing = thread::spawn(|| {
            SOURCE.trace(1);
            let is_left = Threads::with(|thread| {
                let before = ended_count();
                let writers = thread.sources();
                before != 0 && writers.count() != 0
            });
            Threads::end_thread();
            is_left.unwrap_or(false)
        });
        SOURCE.end(ticket);
        assert!(!tracing.join().unwrap(), "a chunk is kept");
        control.finish(1);
    });
}

/// A stop is completed late: the control thread has already ended the instance, and another one is
/// in its slot.
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
