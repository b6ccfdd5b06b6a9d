//! A program and a library that it loads, each with a copy of the SDK that completes its files when
//! a signal ends the process.

use core::ffi::c_int;
use std::ffi::CString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

use esatto_tests::{DEADLINE, Harness};
use esatto_trace::Trace;

use crate::two_copies_do_not_disturb_each_other::{NOW, dlopen, function, plugin};

esatto::categories! {
    static HOST = "host";
}

unsafe extern "C" {
    safe fn raise(signal: c_int) -> c_int;
}

fn act(order: &str, signal: c_int) {
    let path = CString::new(plugin().into_os_string().into_encoded_bytes()).expect("no 0 in it");
    // SAFETY: a string that ends with 0; the library's initialisers are those of Rust's standard
    // library.
    let library = unsafe { dlopen(path.as_ptr(), NOW) };
    assert!(!library.is_null(), "{path:?}");
    let begin = function(library, c"plugin_complete_on_signals");
    // SAFETY: the function has this type (`examples/plugin.rs`).
    let begin = unsafe { core::mem::transmute::<*mut core::ffi::c_void, extern "C" fn() -> c_int>(begin) };
    if order == "plugin first" {
        assert_eq!(begin(), 0);
    }
    core::mem::forget(esatto::trace_to_file("of-the-host").expect("starts"));
    esatto::complete_on_signals().expect("starts");
    if order == "host first" {
        assert_eq!(begin(), 0);
    }
    esatto::instant!(HOST, "in the host");
    raise(signal);
    std::thread::sleep(DEADLINE);
}

#[test]
fn and_both_complete_their_files() {
    let again = esatto_tests::again!(and_both_complete_their_files);
    if let Some(role) = again.role() {
        let (order, signal) = role.split_once(", ").expect("both");
        act(order, signal.parse().expect("a number"));
        return;
    }
    let _ = plugin();
    for order in ["host first", "plugin first"] {
        for signal in [1, 2, 15] {
            let harness = Harness::new();
            let mut command = again.command(&harness, &format!("{order}, {signal}"));
            let output = command.process_group(0).output().expect("it runs");
            assert_eq!(output.status.signal(), Some(signal), "{order}: {output:?}");
            for (file, event) in [("of-the-host", "in the host"), ("of-the-plugin", "in the plugin")] {
                let trace = Trace::read(&std::fs::read(harness.path(file)).expect("a file")[..]);
                let names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
                assert_eq!(names, [event], "{order}, {signal}");
                assert!(trace.errors.is_empty(), "{order}, {signal}: {:?}", trace.errors);
            }
        }
    }
}
