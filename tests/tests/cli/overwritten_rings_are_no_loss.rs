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
const ADVICE: &str = "add `incremental_state_config { clear_period_ms: 1000 }`";
const REMARK: &str = "normal for a ring buffer";

/// Records with this config. Returns the output of `esatto record`, and that of `esatto info`.
fn record(config: &str) -> (String, String) {
    let harness = Harness::new();
    let (config, trace) = (harness.write("config", config), harness.path("trace"));
    let application = harness.application_command(Implementation::Ours, WORKLOAD);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-c"]).arg(config).arg("-o").arg(&trace).arg("--");
    command.arg(application.get_program()).args(application.get_args());
    let mut record = harness.start("esatto-record", &mut command);
    record.wait_ok();
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(info.contains("chunks_overwritten"), "the ring is too large for the test:\n{info}");
    (record.log(), info)
}

#[test]
fn if_they_are_read_at_the_end() {
    let (log, info) = record(RING);
    assert!(!log.contains(WARNING) && log.contains(ADVICE), "{log}");
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

#[test]
fn and_need_no_advice_if_names_come_again() {
    let (log, _) = record(&format!("{RING}incremental_state_config {{ clear_period_ms: 100 }}\n"));
    assert!(!log.contains(ADVICE), "{log}");
}
