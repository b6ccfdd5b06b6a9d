//! `esatto info` tells when each program connected and when its recording began. It warns if a
//! program ran in between, because its events of this time are missing.

use esatto_tests::workload::CONFIG_WITHOUT_DEBUG;
use esatto_tests::{Harness, Implementation, Peer, esatto_bin, skip};
use serde_json::Value;
use std::process::Command;

esatto::categories! {
    static APP = "app";
}

/// The advice below the table.
const ADVICE: &str = "set ESATTO_WAIT_MS=5000 for the program";

/// Records a program that does not wait by itself. Returns the report as text, and what it has in
/// JSON about the program.
fn record(service: Implementation, is_first: bool, wait_ms: Option<&str>) -> (String, Value) {
    let harness = Harness::new();
    let _service = harness.service(service);
    let start = || {
        let mut command = harness.command(esatto_tests::beside_this_test("esatto-producer"));
        // Rounds of 5 ms; it does not wait for a recording. The first one runs until it is killed.
        let rounds = if is_first { "1000000" } else { "100" };
        command.args(["1", rounds, "5000", "60", "0"]).envs(wait_ms.map(|ms| ("ESATTO_WAIT_MS", ms)));
        harness.start("producer", &mut command)
    };
    let first = is_first.then(start);
    if is_first {
        harness.wait_for_data_source("track_event");
    }
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG_WITHOUT_DEBUG);
    harness.wait_for_sessions(1);
    let mut program = first.unwrap_or_else(start);
    let trace = if is_first {
        // It records events every few milliseconds.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let trace = recording.stop();
        program.kill();
        trace
    } else {
        program.wait_ok();
        harness.stop(&mut recording)
    };
    let info = |options: &[&str]| {
        let info = Command::new(esatto_bin()).arg("info").arg(&trace).args(options).output().expect("it runs");
        String::from_utf8(info.stdout).expect("text")
    };
    let json: Value = serde_json::from_str(&info(&["--json"])).expect("JSON");
    let processes = json["processes"].as_array().expect("a list");
    let process = processes.iter().find(|process| process["pid"] == program.pid()).expect("the program").clone();
    (info(&[]), process)
}

fn ns(process: &Value, key: &str) -> i64 {
    process[key].as_i64().unwrap_or_else(|| panic!("no {key} in {process}"))
}

#[test]
fn of_a_program_that_does_not_wait() {
    let (text, process) = record(Implementation::Ours, false, None);
    let missing = ns(&process, "missing_ns");
    let since_connected = ns(&process, "enabled_ns") - ns(&process, "connected_ns");
    assert!(missing > 0 && missing <= since_connected, "{process}");
    assert!(ns(&process, "first_packet_ns") >= ns(&process, "enabled_ns"), "{process}");
    let (_, table) = text.split_once("\nStarts of programs\n").expect("a table");
    let row = table.lines().nth(1).expect("a row");
    assert!(row.contains("its first ") && row.ends_with(" are missing"), "{text}");
    assert!(text.contains(ADVICE), "{text}");
}

#[test]
fn also_with_perfettos_service() {
    skip(|| {
        Peer::Official.require()?;
        let (_, process) = record(Implementation::Theirs, false, None);
        assert!(ns(&process, "missing_ns") > 0, "{process}");
        Ok(())
    });
}

#[test]
fn but_not_of_one_that_waits() {
    let (text, process) = record(Implementation::Ours, false, Some("60000"));
    assert_eq!(ns(&process, "missing_ns"), 0);
    assert!(ns(&process, "enabled_ns") > ns(&process, "connected_ns"), "{process}");
    assert!(!text.contains(ADVICE), "{text}");
}

#[test]
fn nor_of_one_that_connects_again() {
    let again = esatto_tests::again!(nor_of_one_that_connects_again);
    if again.role().is_some() {
        for _ in 0..3 {
            let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
            esatto::instant!(APP, "round");
            esatto::shutdown();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        return;
    }
    let harness = Harness::new();
    let output = again.recorded(&harness, "again", &["-o", "trace"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("are missing"), "{said}");
    let info = harness.command(esatto_bin()).args(["info", "--json", "trace"]).output().expect("it runs");
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["slices"]["instants"], 3, "{info:#}");
}

#[test]
fn nor_of_one_that_ran_before() {
    let (text, process) = record(Implementation::Ours, true, None);
    assert!(process["missing_ns"].is_null(), "{process}");
    let (_, table) = text.split_once("\nStarts of programs\n").expect("a table");
    assert!(table.lines().nth(1).is_some_and(|row| row.contains(" before ")), "{text}");
    assert!(!text.contains(ADVICE), "{text}");
}
