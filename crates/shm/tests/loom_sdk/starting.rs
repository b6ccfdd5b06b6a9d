//! An instance starts while a thread traces.

use loom::thread;

use crate::check;
use crate::instance::TRACK_EVENTS;
use crate::stand_ins::{CATEGORY, Control, FRESH, trace};
use crate::sys::threads;

/// Who sees the bit finds slot, stamp and destination: the event is recorded.
pub(crate) fn who_sees_that_an_instance_records_finds_it() {
    check(2, || {
        let control = Control::new();
        let tracing = thread::spawn(|| {
            let seen = CATEGORY.glance() != 0;
            let recorded = trace(&CATEGORY, 1);
            threads::end();
            (seen, recorded)
        });
        control.record(1, &CATEGORY);
        let (seen, recorded) = tracing.join().unwrap();
        assert!(recorded || !seen, "it was lost");
        let expected: &[u8] = if recorded { &[1 | FRESH] } else { &[] };
        assert_eq!(control.finish(1), expected);
    });
}

/// The next session is not refused because a thread is looking for the last one just now.
pub(crate) fn a_slot_that_somebody_looks_at_is_free_all_the_same() {
    check(2, || {
        let control = Control::new();
        let first = control.set_up(1);
        let looking = thread::spawn(|| drop(TRACK_EVENTS.get(0)));
        control.end(first, &CATEGORY);
        control.set_up(2);
        looking.join().unwrap();
        control.finish(1);
    });
}
