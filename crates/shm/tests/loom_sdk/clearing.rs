//! Incremental state is cleared while a thread traces.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::check;
use crate::instance::TRACK_EVENTS;
use crate::stand_ins::{CATEGORY, Control, FRESH, trace};
use crate::sys::threads;

pub(crate) fn what_comes_after_begins_anew() {
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
                threads::end();
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
