//! `esatto sessions` lists the sessions of the service, and ends them in order.

use crate::rows_of_sessions::sessions;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, esatto_bin, tp};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 2000 };
const NAMED: &str = "unique_session_name: \"mine\" duration_ms: 600000 buffers { size_kb: 1024 } \
                     data_sources { config { name: \"track_event\" } }";

fn stop(harness: &Harness, session: &str) -> (bool, String) {
    let output = harness.command(esatto_bin()).args(["sessions", "stop", session]).output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn without_a_session() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let output = harness.command(esatto_bin()).arg("sessions").output().expect("it runs");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "No session runs.\n");
    let (is_ended, said) = stop(&harness, "nobody");
    assert!(!is_ended && said.contains("cannot find the session \"nobody\""), "{said}");
}

#[test]
fn a_recording_ends_as_if_by_ctrl_c() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_data_source("track_event");
        let mut recording = harness.record(Implementation::Ours, "trace", NAMED);
        harness.wait_for_sessions(1);
        let listed = sessions(&harness);
        assert_eq!((&listed[0]["name"], &listed[0]["buffers_kb"][0]), (&"mine".into(), &1024.into()));
        assert_eq!(listed[0]["pid"], recording.program.pid());
        let (is_ended, said) = stop(&harness, "mine");
        assert!(is_ended && said.contains("has ended session 1"), "{said}");
        recording.program.wait_ok();
        assert!(tp::rows(&harness.path("trace"), "select count(*) as n from slice")[0].int("n") > 0);
        assert!(sessions(&harness).is_empty());
        Ok(())
    });
}

#[test]
fn a_detached_session_ends_with_its_last_events() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::TraceProcessor.require()?;
        let harness = Harness::with_perfetto(Implementation::Ours);
        let _service = harness.service(Implementation::Ours);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_data_source("track_event");
        harness.write("c.cfg", format!("write_into_file: true file_write_period_ms: 3600000 {NAMED}"));
        let (code, log) = harness.run_perfetto(&["-c", "c.cfg", "--txt", "--detach", "key", "-o", "trace"]);
        assert_eq!(code, 0, "{log}");
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(sessions(&harness)[0]["detach_key"], "key");
        let (is_ended, said) = stop(&harness, "key");
        assert!(is_ended, "{said}");
        assert!(tp::rows(&harness.path("trace"), "select count(*) as n from slice")[0].int("n") > 0);
        Ok(())
    });
}

/// The sessions of Perfetto's service are listed, but it does not tell who controls them.
#[test]
fn a_service_of_perfetto() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::Official.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let _recording = harness.record(Implementation::Ours, "trace", NAMED);
        harness.wait_for_sessions(1);
        assert_eq!(sessions(&harness)[0]["name"], "mine");
        let (is_ended, said) = stop(&harness, "mine");
        assert!(!is_ended && said.contains("does not tell who controls it"), "{said}");
        Ok(())
    });
}
