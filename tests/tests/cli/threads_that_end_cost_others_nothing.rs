//! A program with a thread for each request keeps the events of its other threads.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use esatto_tests::{Harness, esatto_bin};

esatto::categories! {
    static APP = "app";
}

/// More than the sequences without data that a buffer remembers.
const REQUESTS: usize = 1500;
const WORK: usize = 100;
const TEXT: &str = "a text that fills chunks of four kilobytes after some fifty events, so that there are two or more";

#[test]
fn of_events() {
    let again = esatto_tests::again!(of_events);
    if again.role().is_some() {
        let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        let (go_on, is_time) = mpsc::channel();
        let worker = thread::spawn(move || {
            // More than one chunk: a first one tells a reader that nothing is before it.
            for _ in 0..WORK {
                esatto::instant!(APP, "worker", text = TEXT);
            }
            for () in is_time {
                esatto::instant!(APP, "worker", text = TEXT);
            }
        });
        for _ in 0..REQUESTS {
            thread::spawn(|| esatto::instant!(APP, "request")).join().expect("it ends");
        }
        // The service reads what it has in between.
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(400));
            for _ in 0..REQUESTS / 3 {
                thread::spawn(|| esatto::instant!(APP, "request")).join().expect("it ends");
            }
            go_on.send(()).expect("the worker lives");
        }
        drop(go_on);
        worker.join().expect("it ends");
        return;
    }
    let harness = Harness::new();
    let output = again.recorded(&harness, "trace", &["--long", "trace"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("cannot be read"), "{said}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let count = |name: &str| {
        let names = info["slices"]["by_name"].as_array().expect("a list");
        names.iter().find(|row| row["name"] == name).map_or(0, |row| row["count"].as_u64().expect("a number"))
    };
    assert_eq!((count("worker"), count("request")), (WORK as u64 + 3, 2 * REQUESTS as u64), "{said}");
}
