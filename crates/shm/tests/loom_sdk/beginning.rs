//! Something that is begun and ended, such as a slice of a future, while instances follow each other.

use loom::thread;

use crate::begun::Begun;
use crate::category::Category;
use crate::check;
use crate::event::Arg;
use crate::event::Site;
use crate::stand_ins::{CATEGORY, Control, FRESH, trace};
use crate::sys::threads;

static BEGIN_AND_END: Site = Site { category: &Category, event: 2 };

pub(crate) fn the_rest_goes_where_the_begin_went() {
    check(2, || {
        let control = Control::new();
        let first = control.record(1, &CATEGORY);
        let tracing = thread::spawn(|| {
            let begun = Begun::by(|| u32::from(trace(&CATEGORY, 1)));
            begun.record(&BEGIN_AND_END, &mut [Arg::default()]);
            threads::end();
        });
        control.end(first, &CATEGORY);
        control.record(2, &CATEGORY);
        tracing.join().unwrap();
        let events = control.finish(2);
        assert!(events.is_empty() || events == [1 | FRESH, 2], "{events:?}");
    });
}
