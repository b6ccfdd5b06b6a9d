//! `esatto record -- COMMAND` has room for a command with hundreds of threads.

use std::sync::Barrier;
use std::thread;

use esatto_tests::{Harness, esatto_bin};

esatto::categories! {
    static APP = "app";
}

const THREADS: usize = 300;
const ROUNDS: usize = 20;

#[test]
fn of_track_events() {
    let again = esatto_tests::again!(of_track_events);
    if again.role().is_some() {
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
    let output = again.recorded(&harness, "trace", &["-o", "trace"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("lost"), "{said}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let at_work = &info["slices"]["by_name"][0];
    assert_eq!((&at_work["name"], &at_work["count"]), (&"at work".into(), &(THREADS * ROUNDS).into()), "{info:#}");
}
