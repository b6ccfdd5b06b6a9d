//! `esatto record -- COMMAND` has room for a command with hundreds of threads.

use std::sync::Barrier;
use std::thread;

use esatto_tests::{Harness, esatto_bin};

esatto::categories! {
    static APP = "app";
}

/// Makes this test program the one that is recorded.
const TRACE: &str = "TEST_MANY_THREADS";
const THREADS: usize = 300;
const ROUNDS: usize = 20;

#[test]
fn of_track_events() {
    if std::env::var_os(TRACE).is_some() {
        let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        let together = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        esatto::instant!(APP, "at work", round = round);
                        together.wait();
                    }
                });
            }
        });
        return;
    }
    let harness = Harness::new();
    let this = std::env::current_exe().expect("a program");
    let test = concat!(module_path!(), "::of_track_events");
    let test = test.split_once("::").expect("a module of a crate").1;
    let mut command = harness.command(esatto_bin());
    command.env(TRACE, "1").args(["record", "-o", "trace", "--"]).arg(this).args(["--exact", test]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("lost"), "{said}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let at_work = &info["slices"]["by_name"][0];
    assert_eq!((&at_work["name"], &at_work["count"]), (&"at work".into(), &(THREADS * ROUNDS).into()), "{info:#}");
}
