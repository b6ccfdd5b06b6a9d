//! `esatto top` shows what sessions record, and what they lose.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Signal, esatto_bin};
use serde_json::Value;
use std::process::Output;

const ENDLESS: Workload = Workload { threads: 2, rounds: 1_000_000, pause_us: 100 };

fn top(harness: &Harness, args: &[&str]) -> Output {
    harness.command(esatto_bin()).arg("top").args(args).output().expect("it runs")
}

#[test]
fn a_ring_that_is_full_shows_how_much_it_holds() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let empty = top(&harness, &["--once", "-i", "1ms"]);
    assert_eq!(String::from_utf8_lossy(&empty.stdout), "No session runs.\n");
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    let config = "unique_session_name: \"ring\" buffers { size_kb: 64 fill_policy: RING_BUFFER } \
                  data_sources { config { name: \"track_event\" } } flush_period_ms: 100";
    let _recording = harness.record(Implementation::Theirs, "trace", config);
    harness.wait_for_sessions(1);
    esatto_tests::wait_until("the ring is overwritten", || {
        let output = top(&harness, &["--once", "--json", "-i", "200ms", "ring"]);
        let look: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let session = &look["sessions"][0];
        let loss = session["losses"].as_array()?.iter().find(|loss| loss["what"] == "chunks_overwritten")?;
        assert_eq!((&loss["is_normal"], &session["buffers"][0]["size"]), (&true.into(), &65536.into()));
        (session["buffers"][0]["overwritten_per_s"].as_u64()? > 0).then_some(())
    });
    let output = top(&harness, &["--once", "-i", "200ms"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("session 1 ring: started") && text.contains("buffers { size_kb: 128 }"), "{text}");
    let unknown = top(&harness, &["--once", "nobody"]);
    assert!(!unknown.status.success());
}

/// A script that follows it ends it with a signal.
#[test]
fn it_goes_on_as_json_until_a_signal() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut command = harness.command(esatto_bin());
    let mut program = harness.start("top", command.args(["top", "--json", "-i", "20ms"]));
    esatto_tests::wait_until("it has looked three times", || (program.log().lines().count() > 3).then_some(()));
    program.signal(Signal::INT);
    program.wait_ok();
}

#[test]
fn a_service_of_perfetto_tells_less() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::Official.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let config = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } }";
        let _recording = harness.record(Implementation::Theirs, "trace", config);
        harness.wait_for_sessions(1);
        let output = top(&harness, &["--once", "-i", "1ms"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("only Esatto's service tells"), "{text}");
        Ok(())
    });
}
