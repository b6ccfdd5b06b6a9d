//! A flush, while threads trace and end.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::stand_ins::{CATEGORY, Control, FRESH, flush_all, trace};
use crate::sys::threads;
use crate::{check, check_three};

/// The flush is asked for after the first event, whatever the thread does by then.
fn after_an_event(then: fn(), flush: fn(&mut Control) -> Vec<u8>) {
    let mut control = Control::new();
    control.record(1, &CATEGORY);
    let over = Arc::new(AtomicBool::new(false));
    let tracing = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            trace(&CATEGORY, 1);
            over.store(true, Ordering::Release);
            then();
            threads::end();
        })
    };
    let flushed = over.load(Ordering::Acquire).then(|| flush(&mut control));
    tracing.join().unwrap();
    let events = control.finish(1);
    assert_eq!(events.first(), Some(&(1 | FRESH)));
    if let Some(flushed) = flushed {
        assert_eq!(flushed.first(), Some(&(1 | FRESH)));
    }
}

pub(crate) fn covers_what_happened_before() {
    check(2, || {
        after_an_event(trace_another, |control| control.flush(1));
    });
}

fn trace_another() {
    trace(&CATEGORY, 2);
}

/// This does not hold.
pub(crate) fn without_a_look() {
    check(2, || {
        after_an_event(trace_another, |control| {
            flush_all();
            control.commit(1)
        });
    });
}

pub(crate) fn covers_what_happened_before_on_a_thread_that_ends() {
    check(2, || after_an_event(|| (), |control| control.flush(1)));
}

/// The program asks for a flush while the control thread flushes, and a third thread traces.
pub(crate) fn by_two_at_once_ends_and_loses_nothing() {
    check_three(|| {
        let control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            threads::end();
        });
        let flushing = thread::spawn(|| {
            flush_all();
            threads::end();
        });
        flush_all();
        tracing.join().unwrap();
        flushing.join().unwrap();
        assert_eq!(control.finish(1), [1 | FRESH]);
    });
}
