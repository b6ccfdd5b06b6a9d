//! A program and a library that it loads, each with a copy of the SDK. The trace has one process.
//! Both copies describe its threads in the same way, and each has its own sequences.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::PathBuf;
use std::process::Command;

use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static HOST = "host";
}

const ROUNDS: c_int = 500;

mod a_program_and_its_plugin {
    esatto_tests::scenario!([ours, theirs] super::record, super::check);
}

unsafe extern "C" {
    pub(crate) fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW`: the library uses its own symbols.
pub(crate) const NOW: c_int = 2;

/// The plugin, built now unless it is up to date: a test that is run alone does not build examples.
pub(crate) fn plugin() -> PathBuf {
    let tests = std::env::current_exe().expect("there is a program");
    let profile = tests.parent().and_then(|deps| deps.parent()).expect("in target/debug/deps");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "esatto-tests", "--example", "plugin", "--target-dir"]);
    cargo.arg(profile.parent().expect("in a target folder")).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success());
    profile.join("examples/libplugin.so")
}

/// A function of the plugin.
pub(crate) fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: an open library, and a string that ends with 0.
    let address = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "no {name:?}");
    address
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(4096));
    let path = CString::new(plugin().into_os_string().into_encoded_bytes()).expect("no 0 in it");
    // SAFETY: a string that ends with 0; the library's initialisers are those of Rust's standard
    // library.
    let library = unsafe { dlopen(path.as_ptr(), NOW) };
    assert!(!library.is_null(), "{path:?}");
    let (trace, end) = (function(library, c"plugin_trace"), function(library, c"plugin_end"));
    // SAFETY: the functions have these types (`examples/plugin.rs`).
    let (trace, end) = unsafe {
        (
            core::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(trace),
            core::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(end),
        )
    };
    for round in 0..ROUNDS {
        let _slice = esatto::slice!(HOST, "in the host", round = round);
    }
    assert_eq!(trace(ROUNDS), 0);
    // From inside of a trace point of the one, the other traces all the same.
    esatto::instant!(HOST, "around", |_event| assert_eq!(trace(1), 0));
    assert_eq!(end(), 0);
    esatto::instant!(HOST, "the plugin has gone");
    assert!(HOST.is_enabled());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [counts, processes, threads] = trace.query([
        "select name, count() as n from slice group by name order by name",
        "select distinct pid from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
            join process using (upid)",
        "select count(distinct utid) as n from slice join thread_track on slice.track_id = thread_track.id
            where slice.name = 'in the plugin'",
    ]);
    let counts: Vec<_> = counts.iter().map(|row| (row.text("name"), row.int("n"))).collect();
    let rounds = i64::from(ROUNDS);
    let expected =
        [("around", 1), ("in the host", rounds), ("in the plugin", 2 * (rounds + 1)), ("the plugin has gone", 1)];
    assert_eq!(counts, expected);
    assert_eq!(processes.len(), 1);
    assert_eq!(threads[0].int("n"), 3, "the host's thread, and one for each call");
    // The main thread has a sequence of each copy; no copy wrote into the other's.
    let events = esatto_trace::events(&trace.bytes());
    let of = |category: &str| -> BTreeSet<u32> {
        events.iter().filter(|event| event.categories == [category]).map(|event| event.sequence).collect()
    };
    assert_eq!((of("host").len(), of("plugin").len()), (1, 3));
    assert!(of("host").is_disjoint(&of("plugin")));
}
