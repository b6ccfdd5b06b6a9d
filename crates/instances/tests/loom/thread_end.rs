//! Models of a thread that ends.

use esatto_instances::ThreadTable as _;
use loom::thread;

use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, Threads, flush_all, trace};
use crate::{check, check_three};

pub(crate) fn a_thread_that_ends_during_a_flush_loses_nothing() {
    check(3, || {
        let control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            Threads::end_thread();
            trace(&CATEGORY, 2)
        });
        flush_all();
        let recorded = tracing.join().unwrap();
        assert_eq!(control.finish(1), [1 | FRESH]);
        assert!(!recorded, "it has ended");
    });
}

pub(crate) fn a_thread_that_ends_during_a_stop_loses_nothing() {
    check(2, || {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let recorded = trace(&CATEGORY, 1);
            Threads::end_thread();
            recorded
        });
        control.stop(ticket, &CATEGORY);
        let recorded = tracing.join().unwrap();
        let expected: &[u8] = if recorded { &[1 | FRESH] } else { &[] };
        assert_eq!(control.finish(1), expected);
    });
}

/// When a thread has ended, it has returned its chunk, even if a flush still has its state.
pub(crate) fn a_thread_that_has_ended_has_returned_its_chunk() {
    check_three(|| {
        let mut control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            Threads::end_thread();
        });
        let flushing = thread::spawn(|| {
            flush_all();
            Threads::end_thread();
        });
        tracing.join().unwrap();
        let events = control.commit(1);
        flushing.join().unwrap();
        control.finish(1);
        assert_eq!(events, [1 | FRESH]);
    });
}
