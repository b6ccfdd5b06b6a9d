//! Models of an instance that starts while a thread traces.

use esatto_instances::ThreadTable as _;
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, TRACK_EVENTS, Threads, trace};

/// A thread that sees the bit finds slot, stamp and destination: the event is recorded.
pub(crate) fn an_instance_that_is_seen_to_record_gets_the_event() {
    check(2, || {
        let control = Control::new();
        let tracing = thread::spawn(|| {
            let seen = CATEGORY.peek() != 0;
            let recorded = trace(&CATEGORY, 1);
            Threads::end_thread();
            (seen, recorded)
        });
        control.record(1, &CATEGORY);
        let (seen, recorded) = tracing.join().unwrap();
        assert!(recorded || !seen, "it was lost");
        let expected: &[u8] = if recorded { &[1 | FRESH] } else { &[] };
        assert_eq!(control.finish(1), expected);
    });
}

/// The next session is not refused because a thread reads the slot of the last one just now.
pub(crate) fn a_slot_that_a_thread_reads_can_be_filled_again() {
    check(2, || {
        let control = Control::new();
        let first = control.set_up(1);
        let reading = thread::spawn(|| drop(TRACK_EVENTS.get(0)));
        control.end(first, &CATEGORY);
        control.set_up(2);
        reading.join().unwrap();
        control.finish(1);
    });
}
