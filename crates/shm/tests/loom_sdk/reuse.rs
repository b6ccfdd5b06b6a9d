//! The slot of an instance gets another one, with another buffer and other categories, while a thread traces.

use loom::thread;

use crate::check;
use crate::stand_ins::{CATEGORY, Control, FRESH, OTHER, trace};
use crate::sys::threads;

/// A thread has seen that its category is recorded, and is late.
pub(crate) fn an_event_is_not_in_a_successor_that_does_not_want_it() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            threads::end();
        });
        control.end(first, &CATEGORY);
        control.record(2, &OTHER);
        tracing.join().unwrap();
        assert_eq!(control.finish(2), [0; 0]);
    });
}

/// A thread that has a writer for the first instance sees that the second one records.
pub(crate) fn an_event_is_not_in_a_predecessor_whose_successor_wants_it() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            let seen = OTHER.glance() != 0;
            let recorded = trace(&OTHER, 2);
            threads::end();
            (seen, recorded)
        });
        control.end(first, &CATEGORY);
        control.record(2, &OTHER);
        let (seen, recorded) = tracing.join().unwrap();
        assert!(recorded || !seen, "it was lost");
        let expected: &[u8] = if recorded { &[2 | FRESH] } else { &[] };
        assert_eq!(control.finish(2), expected);
    });
}
