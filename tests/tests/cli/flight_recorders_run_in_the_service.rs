//! `esatto snapshot` starts a flight recorder, saves what it has, and ends it.

use crate::rows_of_sessions::sessions;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, Signal, Skip, esatto_bin, tp, wait_until};
use std::process::Output;

const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 2000 };

fn snapshot(harness: &Harness, args: &[&str]) -> Output {
    harness.command(esatto_bin()).arg("snapshot").args(args).output().expect("it runs")
}

mod from_start_to_stop {
    use super::*;

    fn scenario(service: Implementation) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(service);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_data_source("track_event");
        let started = snapshot(&harness, &["start", "flight", "--ring", "4M"]);
        assert!(started.status.success(), "{started:?}");
        // No process of the command goes on.
        assert_eq!(sessions(&harness).len(), 1);
        let again = snapshot(&harness, &["start", "flight"]);
        assert!(!again.status.success(), "{again:?}");
        let mut end = 0;
        for name in ["first", "second"] {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let taken = snapshot(&harness, &["take", "flight", "-o", name]);
            assert!(taken.status.success(), "{taken:?}");
            let row = &tp::rows(&harness.path(name), "select count(*) as n, max(ts) as end from slice")[0];
            assert!(row.int("n") > 0 && row.int("end") > end, "it goes on");
            end = row.int("end");
        }
        let ended = snapshot(&harness, &["stop", "flight"]);
        assert!(ended.status.success(), "{ended:?}");
        assert!(sessions(&harness).is_empty());
        assert!(!snapshot(&harness, &["stop", "flight"]).status.success());
        // The list of sessions ends it, too, also where the service does not tell keys.
        assert!(snapshot(&harness, &["start", "flight"]).status.success());
        let ended = harness.command(esatto_bin()).args(["sessions", "stop", "flight"]).output().expect("it runs");
        assert!(ended.status.success() && sessions(&harness).is_empty(), "{ended:?}");
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}

#[test]
fn a_snapshot_of_a_full_ring_is_sound() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, Workload { threads: 3, pause_us: 1000, ..ENDLESS });
    harness.wait_for_data_source("track_event");
    assert!(snapshot(&harness, &["start", "flight", "--ring", "512K"]).status.success());
    // A program that is too slow for a moment loses events, and that stays a loss.
    let checked = wait_until("a snapshot whose ring has overwritten names, and that lost nothing", || {
        let taken = snapshot(&harness, &["take", "flight", "-o", "taken"]);
        assert!(taken.status.success(), "{taken:?}");
        let output = harness.command(esatto_bin()).args(["check", "taken"]).output().expect("it runs");
        let checked = String::from_utf8_lossy(&output.stdout).into_owned();
        (checked.contains(" oldest packets of the ring could not be read") && output.status.success())
            .then_some(checked)
    });
    assert!(checked.starts_with("taken: sound. ") && checked.contains("  note: the "), "{checked}");
}

#[test]
fn a_program_that_does_not_answer_is_named() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    assert!(snapshot(&harness, &["start", "flight", "--ring", "1M"]).status.success());
    application.signal(Signal::STOP);
    let taken = snapshot(&harness, &["take", "flight", "-o", "taken"]);
    application.signal(Signal::CONT);
    let said = String::from_utf8_lossy(&taken.stderr);
    assert!(taken.status.success() && said.contains("(track_event) did not deliver the last events in time"), "{said}");
}

#[test]
fn the_buffers_of_a_preset_share_the_ring() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let presets = harness.command(esatto_bin()).args(["config", "presets", "--json"]).output().expect("it runs");
    let presets: serde_json::Value = serde_json::from_slice(&presets.stdout).expect("JSON");
    let mut with_several = 0;
    for preset in presets["presets"].as_array().expect("a list").iter().map(|preset| &preset["name"]) {
        let preset = preset.as_str().expect("a name");
        let started = snapshot(&harness, &["start", "flight", "--ring", "8M", "--preset", preset]);
        assert!(started.status.success(), "{preset}: {started:?}");
        let look = harness.command(esatto_bin()).args(["top", "--once", "--json", "-i", "1ms"]).output();
        let look: serde_json::Value = serde_json::from_slice(&look.expect("it runs").stdout).expect("JSON");
        let buffers = look["sessions"][0]["buffers"].as_array().expect("buffers");
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer["size"].as_u64().expect("a size")).collect();
        // Shares are whole KiB, and buffers are whole pages.
        let sum: u64 = sizes.iter().sum();
        assert!(sum.abs_diff(8 << 20) <= 4096 * sizes.len() as u64, "{preset}: {sizes:?}");
        with_several += usize::from(sizes.len() > 1);
        assert!(snapshot(&harness, &["stop", "flight"]).status.success());
    }
    assert!(with_several > 0, "no preset has several buffers:\n{presets}");
}

#[test]
fn configs_that_are_no_ring_are_refused() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let source = "data_sources { config { name: \"track_event\" } }";
    for (config, why) in [
        ("buffers { size_kb: 64 fill_policy: DISCARD }", "DISCARD"),
        ("buffers { size_kb: 64 } write_into_file: true", "writes into a file"),
        (
            "buffers { size_kb: 64 } trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 9 \
             triggers { name: \"t\" } }",
            "has triggers",
        ),
    ] {
        harness.write("c.cfg", format!("{config} {source}"));
        let output = snapshot(&harness, &["start", "flight", "-c", "c.cfg"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{config}: {said}");
    }
    assert!(sessions(&harness).is_empty());
}
