//! Scenarios of the SDK: a program uses it in a separate process, and Perfetto's trace processor
//! judges the trace.
//!
//! ```ignore
//! use esatto_tests::sdk::{Recorder, Trace};
//!
//! esatto::categories! { static APP = "app"; }
//! esatto_tests::scenario!(record, check);
//!
//! fn record(recorder: &Recorder) {
//!     let _tracing = recorder.connect(CATEGORIES);
//!     let session = recorder.start(esatto::track_events(1024));
//!     esatto::instant!(APP, "hello");
//!     recorder.finish(session);
//! }
//!
//! fn check(trace: &Trace) {
//!     let [slices] = trace.query(["select name from slice"]);
//!     assert_eq!(slices[0].text("name"), "hello");
//! }
//! ```
//!
//! makes three tests, `in_process`, `ours` and `theirs`: with the service inside the process, our
//! `traced` and Perfetto's. The state of the SDK belongs to its process. So the test starts itself
//! again, and only that process, the *child*, calls `record`. The parent runs the service and, when
//! the child has ended, calls `check`. `record` runs on a separate thread, not on the main thread.
//! Several scenarios in a file go into modules: `mod one { scenario!(super::a, super::b); }`.

mod recorder;
mod scenario;
mod trace;

pub use recorder::Recorder;
pub use scenario::{Backend, Scenario, run};
pub use trace::Trace;

/// Makes a test of a scenario for each backend: see the [module](self).
///
/// | form | |
/// | --- | --- |
/// | `scenario!(record, check)` | `fn(&Recorder)`, `fn(&Trace)` |
/// | `scenario!([ours, theirs] record, check)` | only these of `in_process`, `ours`, `theirs` |
/// | `scenario!(Scenario::new(record).tolerating(&["…"]))` | with options, or without a trace; also after a list |
#[macro_export]
macro_rules! scenario {
    ([$($on:ident),+] $scenario:expr) => {$(
        #[test]
        fn $on() {
            $crate::sdk::run(stringify!($on), module_path!(), &$scenario);
        }
    )+};
    ([$($on:ident),+] $record:expr, $check:expr) => {
        $crate::scenario!([$($on),+] $crate::sdk::Scenario::new($record).check($check));
    };
    ($($scenario:tt)+) => {
        $crate::scenario!([in_process, ours, theirs] $($scenario)+);
    };
}
