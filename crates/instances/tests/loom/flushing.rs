//! Models of a flush while threads trace and end.

use esatto_instances::ThreadTable as _;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, Threads, flush_all, trace};
use crate::{check, check_three};

/// Flushes after the first event, while the thread runs `then` and ends.
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
            Threads::end_thread();
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

pub(crate) fn a_flush_covers_earlier_events() {
    check(2, || {
        after_an_event(trace_another, |control| control.flush(1));
    });
}

fn trace_another() {
    trace(&CATEGORY, 2);
}

/// A flush without a service that reads chunks in memory. This model fails.
pub(crate) fn a_flush_without_scraping() {
    check(2, || {
        after_an_event(trace_another, |control| {
            flush_all();
            control.commit(1)
        });
    });
}

pub(crate) fn a_flush_covers_threads_that_end() {
    check(2, || after_an_event(|| (), |control| control.flush(1)));
}

/// The program flushes while the control thread flushes and a third thread traces.
pub(crate) fn two_flushes_at_once_lose_nothing() {
    check_three(|| {
        let control = Control::new();
        control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            Threads::end_thread();
        });
        let flushing = thread::spawn(|| {
            flush_all();
            Threads::end_thread();
        });
        flush_all();
        tracing.join().unwrap();
        flushing.join().unwrap();
        assert_eq!(control.finish(1), [1 | FRESH]);
    });
}
