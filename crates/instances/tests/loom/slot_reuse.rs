//! Models of a slot that gets another instance, with another buffer and other categories, while a
//! thread traces.

use esatto_instances::ThreadTable as _;
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, OTHER_CATEGORY, Threads, trace};

/// A thread has seen that its category is recorded, but writes only after the instance has changed.
pub(crate) fn a_new_instance_gets_no_event_it_does_not_record() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            Threads::end_thread();
        });
        control.end(first, &CATEGORY);
        control.record(2, &OTHER_CATEGORY);
        tracing.join().unwrap();
        assert_eq!(control.finish(2), [0; 0]);
    });
}

/// A thread that has a writer for the first instance sees that the second one records.
pub(crate) fn an_old_instance_gets_no_event_of_its_successor() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            trace(&CATEGORY, 1);
            let seen = OTHER_CATEGORY.peek() != 0;
            let recorded = trace(&OTHER_CATEGORY, 2);
            Threads::end_thread();
            (seen, recorded)
        });
        control.end(first, &CATEGORY);
        control.record(2, &OTHER_CATEGORY);
        let (seen, recorded) = tracing.join().unwrap();
        assert!(recorded || !seen, "it was lost");
        let expected: &[u8] = if recorded { &[2 | FRESH] } else { &[] };
        assert_eq!(control.finish(2), expected);
    });
}
