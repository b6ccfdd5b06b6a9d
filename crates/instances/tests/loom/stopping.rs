//! Models of an instance that stops while threads trace.

use esatto_instances::ThreadTable as _;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, Threads, trace};
use crate::{check, check_three};

pub(crate) fn a_stop_leaves_whole_events_and_returns_every_chunk() {
    check(2, || {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let recorded = [1, 2].map(|event| trace(&CATEGORY, event));
            Threads::end_thread();
            recorded
        });
        control.stop(ticket, &CATEGORY);
        let recorded = tracing.join().unwrap();
        // All recorded events are there in order: the last chunk came back when the thread ended.
        let events = control.finish(1);
        let expected: &[u8] = match recorded {
            [true, true] => &[1 | FRESH, 2],
            [true, false] => &[1 | FRESH],
            [false, false] => &[],
            [false, true] => panic!("it was stopped before"),
        };
        assert_eq!(events, expected);
    });
}

pub(crate) fn a_stop_returns_the_chunks_of_two_threads() {
    check_three(|| {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = [1, 2].map(|event| {
            thread::spawn(move || {
                let recorded = trace(&CATEGORY, event);
                Threads::end_thread();
                recorded.then_some(event | FRESH)
            })
        });
        control.stop(ticket, &CATEGORY);
        let recorded: Vec<u8> = tracing.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
        let mut events = control.finish(1);
        events.sort_unstable();
        assert_eq!(events, recorded);
    });
}

/// An event that happened before the stop is there when the stop is acknowledged: its chunk has
/// been handed over, or the service can read it. This holds though the thread traces on.
pub(crate) fn a_stop_covers_earlier_events() {
    check(2, || {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let over = Arc::new(AtomicBool::new(false));
        let tracing = {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                trace(&CATEGORY, 1);
                over.store(true, Ordering::Release);
                trace(&CATEGORY, 2);
                Threads::end_thread();
            })
        };
        let events = over.load(Ordering::Acquire).then(|| {
            control.stop(ticket, &CATEGORY);
            control.scrape(1)
        });
        tracing.join().unwrap();
        control.finish(1);
        if let Some(events) = events {
            assert_eq!(events.first(), Some(&(1 | FRESH)));
        }
    });
}
