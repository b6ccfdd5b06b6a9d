//! An instance stops while a thread traces.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::stand_ins::{CATEGORY, Control, FRESH, trace};
use crate::sys::threads;
use crate::{check, check_three};

pub(crate) fn an_event_is_there_whole_or_not_at_all_and_every_chunk_comes_back() {
    check(2, || {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let recorded = [1, 2].map(|event| trace(&CATEGORY, event));
            threads::end();
            recorded
        });
        control.stop(ticket, &CATEGORY);
        let recorded = tracing.join().unwrap();
        // What was recorded is there, in order, whenever that was: the last of it came back when the thread ended.
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

pub(crate) fn every_chunk_comes_back_from_two_threads() {
    check_three(|| {
        let mut control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let tracing = [1, 2].map(|event| {
            thread::spawn(move || {
                let recorded = trace(&CATEGORY, event);
                threads::end();
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

/// An event that was over before the stop has been handed over when that is acknowledged, or can be looked up, though its
/// thread traces on.
pub(crate) fn what_happened_before_is_there() {
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
                threads::end();
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
