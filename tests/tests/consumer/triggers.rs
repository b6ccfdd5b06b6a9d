//! A trigger, sent by `perfetto` itself, starts, stops or clones a session.

use crate::{ENDLESS, config, path, require};
use esatto_tests::{Harness, Implementation, Program, Signal, Skip, tp};
use std::path::Path;

fn trigger(harness: &Harness) {
    let sender = harness.write("send.cfg", r#"activate_triggers: "go""#).display().to_string();
    let (code, log) = harness.run_perfetto(&["--txt", "-c", &sender]);
    assert_eq!(code, 0, "{log}");
}

/// A session with a trigger of this mode, which is configured or runs, and ends after this time
/// without a trigger.
fn waiting(harness: &Harness, mode: &str, timeout_ms: u32) -> Program {
    let more = format!(
        r#"unique_session_name: "triggered"
trigger_config {{ {mode} trigger_timeout_ms: {timeout_ms} triggers {{ name: "go" stop_delay_ms: 1000 }} }}"#
    );
    let config = config(harness, "triggered.cfg", &more);
    let program =
        harness.start("perfetto", &mut harness.perfetto(&["--txt", "-c", &config, "-o", &path(harness, "trace")]));
    esatto_tests::wait_until("there is a session", || (harness.state().sessions == 1).then_some(()));
    program
}

/// Slices of the application, and of the trigger.
fn assert_triggered(trace: &Path, told: i64, service: Implementation) {
    let rows =
        tp::rows(trace, "select count(*) as n, sum(name = 'draw') as drawn, sum(name = 'go') as told from slice");
    assert!(rows[0].int("drawn") > 0, "{rows:?}");
    assert_eq!(rows[0].int("told"), told);
    // Perfetto's service puts the snapshot of a start trigger after the later one of the start.
    if service == Implementation::Ours {
        tp::assert_clean(trace);
    }
}

fn scenario(service: Implementation, client: Implementation, mode: &str) -> Result<(), Skip> {
    require()?;
    let harness = Harness::with_perfetto(client);
    let _service = harness.service(service);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_producers(1);
    let mut session = waiting(&harness, mode, 60_000);
    trigger(&harness);
    if mode.contains("CLONE") || mode.contains("use_clone") {
        // A snapshot does not end the session.
        session.wait_for_log("trace.0");
        session.signal(Signal::INT);
        session.wait_ok();
        assert_triggered(&harness.path("trace.0"), 2, service);
        assert_eq!(std::fs::metadata(harness.path("trace")).expect("the session's own file").len(), 0);
    } else {
        session.wait_ok();
        assert_triggered(&harness.path("trace"), 1, service);
    }
    Ok(())
}

mod start {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        super::scenario(service, client, "trigger_mode: START_TRACING")
    }
    esatto_tests::for_each_client!(scenario);
}

mod stop {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        super::scenario(service, client, "trigger_mode: STOP_TRACING")
    }
    esatto_tests::for_each_client!(scenario);
}

mod clone_snapshot {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        super::scenario(service, client, "trigger_mode: CLONE_SNAPSHOT")
    }
    esatto_tests::for_each_client!(scenario);
}

mod clone_snapshot_if_available {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        super::scenario(service, client, "trigger_mode: STOP_TRACING use_clone_snapshot_if_available: true")
    }
    esatto_tests::for_each_client!(scenario);
}

mod none {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let mut session = waiting(&harness, "trigger_mode: STOP_TRACING", 500);
        session.wait_ok();
        let left = std::fs::metadata(harness.path("trace")).map_or(0, |file| file.len());
        assert_eq!(left, 0, "without a trigger there is nothing to be seen");
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod two_at_once {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_producers(1);
        let more = r#"
trigger_config {
  trigger_mode: CLONE_SNAPSHOT
  trigger_timeout_ms: 60000
  triggers { name: "one" }
  triggers { name: "two" }
}"#;
        let config = config(&harness, "cfg", more);
        let mut session =
            harness.start("perfetto", &mut harness.perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace")]));
        harness.wait_for_sessions(1);
        let sender = "activate_triggers: \"one\"\nactivate_triggers: \"two\"\n";
        let sender = harness.write("send.cfg", sender).display().to_string();
        assert_eq!(harness.run_perfetto(&["--txt", "-c", &sender]).0, 0);
        // Perfetto's service tells of one hit per message, and once in a while of the last only:
        // two hits that wait are one.
        let told = if service == Implementation::Ours { "trace.1" } else { "trace.0" };
        session.wait_for_log(told);
        session.signal(Signal::INT);
        session.wait_ok();
        let snapshots = (0..9).filter(|number| harness.path(format!("trace.{number}")).exists()).count();
        match service {
            Implementation::Ours => assert_eq!(snapshots, 2, "each hit has its own"),
            Implementation::Theirs => assert!((1..=2).contains(&snapshots), "{snapshots} snapshots of two hits"),
        }
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
