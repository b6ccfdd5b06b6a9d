//! A program in a time namespace has other clocks than the service: its events are far from the
//! recording. `check` says so.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Skip, esatto_bin, skip};
use std::process::Command;

const WORKLOAD: Workload = Workload { threads: 1, rounds: 5, pause_us: 1000 };

const CONFIG: &str = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" \
                      track_event_config { enabled_categories: \"rendering\" } } }";

/// Records a program whose clocks are so many seconds ahead, and returns what `check` says.
fn checked(ahead_s: i64) -> Result<String, Skip> {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let application = harness.application_command(Implementation::Ours, WORKLOAD);
    let mut command = harness.command("unshare");
    let ahead = ahead_s.to_string();
    command.args(["--time", "--fork", "--boottime", &ahead, "--monotonic", &ahead]);
    let mut program = harness.start("program", command.arg(application.get_program()).args(application.get_args()));
    if !program.wait().success() && program.log().contains("unshare") {
        return Err(Skip(format!("no time namespaces: {}", program.log().trim())));
    }
    let trace = recording.stop();
    let output = Command::new(esatto_bin()).arg("check").arg(trace).output().expect("it runs");
    Ok(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn far_from_those_of_the_service() {
    skip(|| -> Result<(), Skip> {
        let said = checked(97_200)?;
        assert!(said.contains(" lie 27.0 h after it"), "{said}");
        assert!(said.contains("time namespaces"), "{said}");
        Ok(())
    });
}

#[test]
fn the_same_clocks_are_no_news() {
    skip(|| -> Result<(), Skip> {
        let said = checked(0)?;
        assert!(!said.contains("from the recording"), "{said}");
        Ok(())
    });
}
