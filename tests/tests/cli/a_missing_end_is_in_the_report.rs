//! A trace whose writer died looks whole, because its packets are. `info` says that its end is
//! missing. It says so of no trace that was completed, by whichever programs.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::Proto;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, Program, esatto_bin, skip, wait_until};
use std::path::Path;
use std::process::Command;

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 1000 };
const SHORT: Workload = Workload { threads: 1, rounds: 20, pause_us: 1000 };

const MISSING: &str = "\nEnd       missing: ";

fn info(trace: &Path) -> String {
    let output = Command::new(esatto_bin()).arg("info").arg(trace).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn assert_missing(trace: &Path) {
    let info = info(trace);
    assert!(info.contains(MISSING) && info.contains("end_missing"), "{info}");
}

#[track_caller]
fn assert_whole(trace: &Path) {
    let info = info(trace);
    assert!(info.contains("Packets ") && !info.contains("missing"), "{info}");
}

/// Waits until the trace has content.
fn wait_for_content(trace: &Path) {
    wait_until("the trace", || std::fs::metadata(trace).ok().filter(|meta| meta.len() > 0).map(drop));
}

fn record(harness: &Harness) -> Program {
    harness.start("esatto-record", harness.command(esatto_bin()).args(["record", "-o", "trace"]))
}

#[test]
fn if_the_recording_is_killed() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    for pause_ms in [0, 300] {
        let mut record = record(&harness);
        let trace = harness.path("trace");
        wait_for_content(&trace);
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        record.kill();
        assert_missing(&trace);
        std::fs::remove_file(trace).expect("it is there");
    }
}

#[test]
fn if_the_service_is_killed() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    let mut record = record(&harness);
    wait_for_content(&harness.path("trace"));
    service.kill();
    assert!(!record.wait().success(), "{}", record.log());
    assert_missing(&harness.path("trace"));
}

#[test]
fn not_if_the_recording_has_ended() {
    let harness = Harness::new();
    let application = harness.application_command(Implementation::Ours, SHORT);
    for sleep in ["0", "0.7"] {
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-o", "trace", "sh", "-c", "sleep $0; exec \"$@\"", sleep]);
        command.arg(application.get_program()).args(application.get_args());
        harness.start("esatto-record", &mut command).wait_ok();
        assert_whole(&harness.path("trace"));
    }
}

#[test]
fn not_of_rings_and_files_by_any_program() {
    skip(|| {
        Peer::Official.require()?;
        let config = "buffers { size_kb: 1024 } data_sources { config { name: \"track_event\" track_event_config { \
                      enabled_categories: \"rendering\" } } } duration_ms: 400 flush_period_ms: 50";
        for service in [Implementation::Ours, Implementation::Theirs] {
            let harness = Harness::new();
            let _service = harness.service(service);
            let _application = harness.application(Implementation::Ours, ENDLESS);
            for consumer in [Implementation::Ours, Implementation::Theirs] {
                for (way, into) in [
                    ("ring", ""),
                    ("file", "write_into_file: true file_write_period_ms: 100"),
                    ("deflate", "compression_type: COMPRESSION_TYPE_DEFLATE"),
                ] {
                    let name = format!("{way}-{consumer}");
                    let trace = harness.record(consumer, &name, &format!("{config} {into}")).finish();
                    assert_whole(&trace);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn not_of_a_snapshot() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    let config = "buffers { size_kb: 256 } data_sources { config { name: \"track_event\" track_event_config { \
                  enabled_categories: \"rendering\" } } } trigger_config { trigger_mode: CLONE_SNAPSHOT \
                  trigger_timeout_ms: 60000 triggers { name: \"slow_frame\" } }";
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    harness.wait_for_sessions(1);
    let mut producer = RawProducer::connect(&harness, "trigger");
    assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
    recording.program.wait_for_log("bytes into ");
    assert_whole(&harness.path("trace.0"));
}
