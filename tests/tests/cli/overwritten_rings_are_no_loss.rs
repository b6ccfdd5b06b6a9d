//! A ring buffer that is read at the end keeps the newest data: `record` does not warn of the rest,
//! and `info` calls it normal. If the trace must have everything, both report a loss.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, esatto_bin};
use std::process::Command;

/// Much more than the ring holds.
const WORKLOAD: Workload = Workload { threads: 1, rounds: 5000, pause_us: 0 };

const RING: &str = r#"
buffers { size_kb: 64 fill_policy: RING_BUFFER }
data_sources { config { name: "track_event" track_event_config { enabled_categories: "rendering" } } }
"#;

const FILE: &str = "write_into_file: true\nfile_write_period_ms: 60000\n";

const WARNING: &str = "chunks or packets were lost";
const ADVICE: &str = "Add `incremental_state_config { clear_period_ms: 1000 }`";
const REMARK: &str = "normal for a ring buffer";

/// Records with this config. Returns the output of `esatto record`, and that of `esatto info`.
fn record(config: &str) -> (String, String) {
    let (status, log, info) = record_with_status(config);
    assert_eq!(status, Some(0), "{log}");
    (log, info)
}

/// As [`record`], with the status of `esatto record`.
fn record_with_status(config: &str) -> (Option<i32>, String, String) {
    let harness = Harness::new();
    let (config, trace) = (harness.write("config", config), harness.path("trace"));
    let application = harness.application_command(Implementation::Ours, WORKLOAD);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-c"]).arg(config).arg("-o").arg(&trace).arg("--");
    command.arg(application.get_program()).args(application.get_args());
    let mut record = harness.start("esatto-record", &mut command);
    let status = record.wait().code();
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(info.contains("chunks_overwritten"), "the ring is too large for the test:\n{info}");
    (status, record.log(), info)
}

#[test]
fn if_they_are_read_at_the_end() {
    let (log, info) = record(RING);
    assert!(!log.contains(WARNING) && !log.contains(ADVICE), "{log}");
    let (_, losses) = info.split_once("\nLosses\n").expect("a table");
    let rows: Vec<&str> = losses.lines().skip(1).filter(|row| row.contains("overwrit")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains(REMARK)), "{info}");
}

#[test]
fn unless_a_file_shall_have_everything() {
    let (log, info) = record(&format!("{RING}{FILE}"));
    assert!(log.contains(WARNING), "{log}");
    assert!(!info.contains(REMARK), "{info}");
}

/// With 0, no program sends its names again.
const NO_NAMES: &str = "incremental_state_config { clear_period_ms: 0 }\n";

#[test]
fn unless_no_event_can_be_read() {
    for file in ["", FILE] {
        let (status, log, info) = record_with_status(&format!("{RING}{NO_NAMES}{file}"));
        assert_eq!(status, Some(3), "{log}\n{info}");
        let (_, line) = log.split_once("No event can be read: ").expect(&log);
        assert!(line.contains(" packets need names and other state that were lost. A larger buffer"), "{log}");
        assert!(!log.contains("Open it in"), "{log}");
    }
}

/// Records a large program into a small ring. Large events need patches, and the ring has often
/// overwritten their chunks before they come. Returns the output of `esatto record`, that of
/// `esatto info`, and the log of the service.
fn record_by(service: Implementation, config: &str) -> (String, String, String) {
    let harness = Harness::new();
    let mut service_program = harness.service(service);
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    harness.wait_for_sessions(1);
    let workload = Workload { threads: 8, rounds: 5000, pause_us: 0 };
    harness.application(Implementation::Ours, workload).wait_ok();
    let trace = harness.stop(&mut recording);
    if service == Implementation::Ours {
        service_program.wait_for_log(" ended after ");
    }
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    (recording.program.log(), String::from_utf8(info.stdout).expect("text"), service_program.log())
}

#[test]
fn with_their_late_patches() {
    let (log, info, service) = record_by(Implementation::Ours, &RING.replace("size_kb: 64", "size_kb: 16"));
    assert!(!log.contains(WARNING) && !info.contains("patches_failed"), "{log}\n{info}");
    // A loaded machine may also drop packets in the program.
    assert!(service.contains(" bytes overwritten as a ring buffer does"), "{service}");
    assert!(!service.contains("late patches"), "{service}");
}

#[test]
fn and_need_advice_only_from_other_services() {
    esatto_tests::skip(|| -> Result<(), esatto_tests::Skip> {
        esatto_tests::Peer::Official.require()?;
        let (log, ..) = record_by(Implementation::Theirs, RING);
        assert!(!log.contains(WARNING) && log.contains(ADVICE), "{log}");
        let clearing = format!("{RING}incremental_state_config {{ clear_period_ms: 100 }}\n");
        let (log, ..) = record_by(Implementation::Theirs, &clearing);
        assert!(!log.contains(ADVICE), "{log}");
        Ok(())
    });
}
