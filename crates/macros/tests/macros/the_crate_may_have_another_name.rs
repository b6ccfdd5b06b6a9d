use super::{arguments, record};

mod renamed {
    pub(super) use ::esatto as tracing_library;

    pub(super) mod esatto {
        //! Not the crate of the test.
    }
}

#[allow(unused_imports, reason = "it hides the crate from relative paths")]
use renamed::esatto;
use renamed::tracing_library;

tracing_library::categories! { static RENAMED = "renamed crate"; }

#[derive(tracing_library::TraceArgs)]
#[esatto(crate = tracing_library)]
struct Point {
    x: i8,
}

#[tracing_library::trace(RENAMED, crate = tracing_library, args(point), ret)]
fn work(point: &Point) -> i8 {
    point.x
}

#[test]
fn the_option_crate_names_it() {
    let trace = record(&RENAMED, || assert_eq!(work(&Point { x: -1 }), -1));
    assert_eq!(arguments(&trace, "work"), ["point: {x: -1}", "return: -1"]);
}
