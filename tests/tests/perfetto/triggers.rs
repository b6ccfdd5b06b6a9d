//! §14 and §21: triggers. `trigger_perfetto` is not among the peers, but a config is the same.

use crate::rows::{Row, compare, output_of};
use esatto_tests::{Harness, Implementation, Skip, esatto_bin};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn trigger_perfetto(harness: &Harness) -> Command {
    let mut command = harness.command(esatto_bin());
    command.arg0("trigger_perfetto");
    command
}

#[test]
fn a_config_with_triggers_records_nothing() {
    const CONFIG: &str = "activate_triggers: \"a\" activate_triggers: \"b\" duration_ms: 60000";
    let row = Row { args: &["-c", "c.cfg", "--txt", "-o", "t"], files: &[("c.cfg", CONFIG)], ..Row::default() };
    compare(row, |ours, _| {
        assert_eq!(ours.code, Some(0), "{}", ours.stderr);
        assert!(!ours.harness.path("t").exists());
    });
}

#[test]
fn without_a_service_it_fails() {
    let harness = Harness::new();
    let output = output_of(trigger_perfetto(&harness).arg("a"), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("p.sock"), "{output:?}");
}

#[test]
fn unknown_options_are_ignored_and_names_are_needed() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    assert_eq!(output_of(trigger_perfetto(&harness).args(["--of-the-future", "a"]), "").status.code(), Some(0));
    for args in [&[][..], &["-h"], &["--of-the-future"]] {
        let output = output_of(trigger_perfetto(&harness).args(args), "");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: trigger_perfetto"), "{output:?}");
    }
}

mod trigger_perfetto_ends_a_recording {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let config = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } } trigger_config { \
                      trigger_mode: STOP_TRACING trigger_timeout_ms: 3600000 triggers { name: \"now\" } }";
        harness.write("c.cfg", config);
        let mut program = harness.start("perfetto", &mut harness.perfetto(&["-c", "c.cfg", "--txt", "-o", "t"]));
        harness.wait_for_sessions(1);
        assert!(output_of(trigger_perfetto(&harness).args(["other", "now"]), "").status.success());
        program.wait_ok();
        assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
