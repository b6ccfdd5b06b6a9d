//! Model of incremental state that is cleared while a thread traces.

use esatto_instances::ThreadTable as _;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, TRACK_EVENTS, Threads, trace};

pub(crate) fn events_after_a_clear_start_over() {
    check(2, || {
        let control = Control::new();
        let ticket = control.record(1, &CATEGORY);
        let [begun, cleared] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let tracing = {
            let (begun, cleared) = (Arc::clone(&begun), Arc::clone(&cleared));
            thread::spawn(move || {
                trace(&CATEGORY, 1);
                begun.store(true, Ordering::Release);
                let after = cleared.load(Ordering::Acquire);
                trace(&CATEGORY, 2);
                Threads::end_thread();
                after
            })
        };
        if begun.load(Ordering::Acquire) {
            TRACK_EVENTS.clear_incremental_state(ticket);
            cleared.store(true, Ordering::Release);
        }
        let after = tracing.join().unwrap();
        let events = control.finish(1);
        // The clear may come early, never late.
        assert!(events == [1 | FRESH, 2 | FRESH] || (!after && events == [1 | FRESH, 2]), "{events:?}");
    });
}
