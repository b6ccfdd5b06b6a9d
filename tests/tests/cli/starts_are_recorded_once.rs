//! Events of startup tracing are in the trace of the session that adopts them, which misses
//! nothing, and in no other.

use esatto_tests::{DEADLINE, Harness, esatto_bin, wait_until};
use std::time::Duration;

esatto::categories! {
    static APP = "app";
}

#[test]
fn if_the_recording_has_reached_the_program_already() {
    let again = esatto_tests::again!(if_the_recording_has_reached_the_program_already);
    if again.role().is_some() {
        // `esatto record` lets this wait until the session records.
        let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        let _startup = esatto::StartupTracing::new(&esatto::track_events(1024))
            .timeout(Duration::from_secs(60))
            .start(esatto::Backend::System)
            .expect("starts");
        for n in 0..10 {
            esatto::instant!(APP, "once", n = n);
        }
        return;
    }
    let harness = Harness::new();
    let output = again.recorded(&harness, "start", &["-o", "trace"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["slices"]["by_name"][0]["name"], "once", "{info:#}");
    assert_eq!(info["slices"]["count"], 10, "{info:#}");
}

#[test]
fn if_the_recording_adopts_the_start() {
    let again = esatto_tests::again!(if_the_recording_adopts_the_start);
    if let Some(delay_ms) = again.role() {
        let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        // The service knows this program already, in some of the rounds.
        std::thread::sleep(Duration::from_millis(delay_ms.parse().expect("a number")));
        let (adopted, is_adopted) = std::sync::mpsc::channel();
        let _startup = esatto::StartupTracing::new(&esatto::track_events(1024))
            .timeout(DEADLINE)
            .on_adopted(move || adopted.send(()).expect("heard"))
            .start(esatto::Backend::System)
            .expect("starts");
        esatto::instant!(APP, "early");
        // If the session has reached the program before, there is nothing to adopt.
        wait_until("the session records", || (is_adopted.try_recv().is_ok() || APP.recordings() > 1).then_some(()));
        esatto::instant!(APP, "late");
        return;
    }
    let harness = Harness::new();
    for delay in ["0", "1", "2", "3", "5", "20"] {
        let mut command = again.recorded(&harness, delay, &["--force", "-o", "trace"]);
        let output = command.env("ESATTO_WAIT_MS", "0").output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("missing") && !said.contains("ended before"), "after {delay} ms: {said}");
        let check = harness.command(esatto_bin()).args(["check", "trace"]).output().expect("it runs");
        assert!(check.status.success(), "after {delay} ms: {check:?}");
        let trace = esatto_trace::Trace::read(&std::fs::read(harness.path("trace")).expect("a file")[..]);
        let names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
        assert_eq!(names, ["early", "late"], "after {delay} ms");
    }
}
