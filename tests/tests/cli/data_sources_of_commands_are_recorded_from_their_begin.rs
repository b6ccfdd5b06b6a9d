//! `esatto record -- COMMAND` records a data source of the command from its first packet, and does
//! not delay a command that has nothing to record.

use esatto_tests::{Harness, beside_this_test, esatto_bin};

const OF_THE_PROGRAM: &str = r#"data_sources { config { name: "com.example.load" } }"#;
const TRACK_EVENTS: &str = r#"data_sources { config { name: "track_event" } }"#;
const ANOTHER: &str = r#"data_sources { config { name: "com.example.other" } }"#;

/// The packets of a short program, and the milliseconds that it has waited.
fn record(sources: &[&str], order: &str, packets: u32) -> (Vec<u32>, u64) {
    let harness = Harness::new();
    let config = harness.write("config", format!("buffers {{ size_kb: 256 }}\n{}\n", sources.join("\n")));
    let trace = harness.path("trace");
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-c"]).arg(config).arg("-o").arg(&trace).arg("--");
    command.arg(beside_this_test("esatto-load")).args([order, &packets.to_string()]);
    let output = command.output().expect("it runs");
    let trace = std::fs::read(trace).unwrap_or_default();
    let has = |text: &str| trace.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    let found = (0..packets).filter(|number| has(&format!("load {number}."))).collect();
    let waited = String::from_utf8_lossy(&output.stdout).trim().parse();
    (found, waited.unwrap_or_else(|_| panic!("{output:?}")))
}

fn are_complete(sources: &[&str], order: &str) {
    // On a busy machine, a program that does not wait could be lucky once.
    for _ in 0..3 {
        assert_eq!(record(sources, order, 5).0, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn alone() {
    are_complete(&[OF_THE_PROGRAM], "before");
}

#[test]
fn after_track_events() {
    are_complete(&[TRACK_EVENTS, OF_THE_PROGRAM], "before");
}

#[test]
fn if_they_are_registered_late() {
    are_complete(&[OF_THE_PROGRAM], "after");
    are_complete(&[OF_THE_PROGRAM, TRACK_EVENTS], "after");
}

#[test]
fn but_nothing_else_is_waited_for() {
    let (found, waited_ms) = record(&[ANOTHER], "before", 5);
    assert!(found.is_empty() && waited_ms < 4_000, "{found:?} {waited_ms}");
}
