//! A library with a copy of the SDK of its own, for a program that has one too
//! (`tests/sdk/two_copies_do_not_disturb_each_other.rs`, `two_copies_end_by_one_signal.rs`).

use core::ffi::c_int;
use std::panic::catch_unwind;
use std::time::Duration;

use esatto::Tracing;

esatto::categories! {
    static PLUGIN = "plugin";
}

/// Connects to the service of the system, waits until that records, and traces on this thread and
/// on another. 0 if all went well.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_trace(rounds: c_int) -> c_int {
    let traced = catch_unwind(|| {
        let tracing = Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        assert!(tracing.wait_until_enabled(&PLUGIN, Duration::from_secs(20)), "nobody records");
        let trace = move || {
            for round in 0..rounds {
                let _slice = esatto::slice!(PLUGIN, "in the plugin", round = round);
            }
        };
        trace();
        std::thread::Builder::new().name("plugin".into()).spawn(trace).expect("starts").join().expect("ends");
    });
    c_int::from(traced.is_err())
}

/// Leaves nothing behind. 0 if all was handed over.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_end() -> c_int {
    c_int::from(!esatto::shutdown())
}

/// Traces into the file of this name until the process ends, also by a signal. 0 if it began.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_complete_on_signals() -> c_int {
    let begun = catch_unwind(|| {
        core::mem::forget(esatto::trace_to_file("of-the-plugin").expect("starts"));
        esatto::complete_on_signals().expect("starts");
        esatto::instant!(PLUGIN, "in the plugin");
    });
    c_int::from(begun.is_err())
}
