//! Events of startup tracing that no session adopts are in no trace.

use esatto_tests::{Harness, esatto_bin};
use std::time::Duration;

esatto::categories! {
    static APP = "app";
}

/// Makes this test program the one that is recorded.
const TRACE: &str = "TEST_STARTUP";

#[test]
fn if_the_recording_has_reached_the_program_already() {
    if std::env::var_os(TRACE).is_some() {
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
    let this = std::env::current_exe().expect("a program");
    let test = concat!(module_path!(), "::if_the_recording_has_reached_the_program_already");
    let test = test.split_once("::").expect("a module of a crate").1;
    let mut command = harness.command(esatto_bin());
    command.env(TRACE, "1").args(["record", "-o", "trace", "--"]).arg(this).args(["--exact", test]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["slices"]["by_name"][0]["name"], "once", "{info:#}");
    assert_eq!(info["slices"]["count"], 10, "{info:#}");
}
