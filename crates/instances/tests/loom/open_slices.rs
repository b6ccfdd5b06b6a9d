//! Model of a slice that outlives its trace point, such as that of a future, while instances follow
//! each other.

use esatto_instances::{BegunInstances, ThreadTable as _};
use loom::thread;

use crate::check;
use crate::control::Control;
use crate::sequence::{CATEGORY, FRESH, Sequence, Threads, record_for, trace};

pub(crate) fn the_end_of_a_slice_goes_where_its_begin_went() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let mut begun = BegunInstances::NONE;
            begun.add::<Threads>(|| u32::from(trace(&CATEGORY, 1)));
            record_for(&|| begun.among::<Sequence>(CATEGORY.load()), 2);
            Threads::end_thread();
        });
        control.end(first, &CATEGORY);
        control.record(2, &CATEGORY);
        tracing.join().unwrap();
        let events = control.finish(2);
        assert!(events.is_empty() || events == [1 | FRESH, 2], "{events:?}");
    });
}
