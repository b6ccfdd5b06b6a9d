//! A program whose shared memory is full drops events: `record` and `info` say so.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, esatto_bin};
use std::process::Command;

/// Much more than the shared memory holds.
const WORKLOAD: Workload = Workload { threads: 4, rounds: 20_000, pause_us: 0 };

/// Two pages of shared memory.
const CONFIG: &str = r#"
buffers { size_kb: 65536 fill_policy: DISCARD }
producers { producer_name: "esatto-producer" shm_size_kb: 8 page_size_kb: 4 }
data_sources { config { name: "track_event" track_event_config { enabled_categories: "rendering" } } }
"#;

#[test]
fn at_the_end_of_the_recording() {
    let harness = Harness::new();
    let (config, trace) = (harness.write("config", CONFIG), harness.path("trace"));
    let application = harness.application_command(Implementation::Ours, WORKLOAD);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-c"]).arg(config).arg("-o").arg(&trace).arg(application.get_program());
    let mut record = harness.start("esatto-record", command.args(application.get_args()));
    record.wait_ok();
    let log = record.log();
    assert!(log.contains("because a program found its shared memory full"), "{log}");
    assert!(!log.contains("Larger buffers may help"), "the buffer was large enough:\n{log}");
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(info.contains("smb_full") && !info.contains("chunks_discarded"), "{info}");
}
