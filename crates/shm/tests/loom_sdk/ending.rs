//! A thread ends.

use loom::thread;

use crate::stand_ins::{CATEGORY, Control, FRESH, flush_all, trace};
use crate::sys::threads;
use crate::{check, check_three};

pub(crate) fn loses_nothing_beside_a_flush() {
    check(3, || {
        let control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            threads::end();
            trace(&CATEGORY, 2)
        });
        flush_all();
        let recorded = tracing.join().unwrap();
        assert_eq!(control.finish(1), [1 | FRESH]);
        assert!(!recorded, "it has ended");
    });
}

pub(crate) fn loses_nothing_beside_a_stop() {
    check(2, || {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let recorded = trace(&CATEGORY, 1);
            threads::end();
            recorded
        });
        control.stop(ticket, &CATEGORY);
        let recorded = tracing.join().unwrap();
        let expected: &[u8] = if recorded { &[1 | FRESH] } else { &[] };
        assert_eq!(control.finish(1), expected);
    });
}

/// The chunk has been returned when the thread has ended, even if somebody who goes through all threads knows its state still.
pub(crate) fn is_over_when_the_thread_has_ended() {
    check_three(|| {
        let mut control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            threads::end();
        });
        let flushing = thread::spawn(|| {
            flush_all();
            threads::end();
        });
        tracing.join().unwrap();
        let events = control.commit(1);
        flushing.join().unwrap();
        control.finish(1);
        assert_eq!(events, [1 | FRESH]);
    });
}
