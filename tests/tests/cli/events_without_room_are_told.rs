//! A program whose shared memory is full drops events: `record` and `info` say so.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin};
use std::process::Command;
use std::time::Duration;

esatto::categories! {
    static HUGE_EVENTS = "huge_events";
}

/// Lasts for some seconds, and writes much more in a second than the shared memory holds.
const WORKLOAD: Workload = Workload { threads: 4, rounds: 4000, pause_us: 1000 };

const CONFIG: &str = r#"
buffers { size_kb: 65536 fill_policy: DISCARD }
producers { producer_name: "esatto-producer" shm_size_kb: 16 page_size_kb: 4 }
data_sources { config { name: "track_event" track_event_config { enabled_categories: "rendering" } } }
"#;

mod at_the_end_of_the_recording {
    use super::*;

    #[test]
    fn on_our_service() {
        recording_tells(Implementation::Ours);
    }

    /// It does not count them. The marks are in the packets.
    #[test]
    fn on_perfettos_service() {
        esatto_tests::skip(|| {
            esatto_tests::Peer::Official.require()?;
            recording_tells(Implementation::Theirs);
            Ok(())
        });
    }
}

fn recording_tells(implementation: Implementation) {
    let (log, info) = recorded(implementation, WORKLOAD, |service, application| {
        service.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(1500));
        service.signal(Signal::CONT);
        application.wait_ok();
    });
    assert!(!log.contains("Larger buffers may help"), "the buffer was large enough:\n{log}");
    assert!(!info.contains("chunks_discarded"), "{info}");
}

/// The service stands still from the middle of the program on, until the program has ended.
mod at_the_end_of_the_program {
    use super::*;

    #[test]
    fn on_our_service() {
        program_tells(Implementation::Ours);
    }

    #[test]
    fn on_perfettos_service() {
        esatto_tests::skip(|| {
            esatto_tests::Peer::Official.require()?;
            program_tells(Implementation::Theirs);
            Ok(())
        });
    }
}

fn program_tells(implementation: Implementation) {
    recorded(implementation, Workload { rounds: 1500, ..WORKLOAD }, |service, application| {
        service.signal(Signal::STOP);
        application.wait();
        service.signal(Signal::CONT);
    });
}

/// Records a program, which `disturb` makes lose events, until it has ended. Checks that `record`
/// and `info` tell of the loss, and returns what they wrote.
fn recorded(
    implementation: Implementation,
    workload: Workload,
    disturb: impl FnOnce(&Program, &mut Program),
) -> (String, String) {
    let harness = Harness::new();
    let (config, trace) = (harness.write("config", CONFIG), harness.path("trace"));
    let service = harness.service(implementation);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-t", "1h", "-c"]).arg(config).arg("-o").arg(&trace);
    let mut record = harness.start("esatto-record", &mut command);
    harness.wait_for_sessions(1);
    let mut application = harness.application(Implementation::Ours, workload);
    harness.wait_for_data_source("track_event");
    std::thread::sleep(Duration::from_millis(500));
    disturb(&service, &mut application);
    record.signal(Signal::INT);
    record.wait_ok();
    let log = record.log();
    assert!(log.contains("because a program found its shared memory full"), "{log}");
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(info.contains("smb_full"), "{info}");
    (log, info)
}

#[test]
fn a_recording_that_lost_everything_says_so() {
    let again = esatto_tests::again!(a_recording_that_lost_everything_says_so);
    if again.role().is_some() {
        let tracing = esatto::Tracing::builder().system().start().expect("starts");
        assert!(tracing.wait_until_enabled(&HUGE_EVENTS, Duration::from_secs(20)), "it is recorded");
        // Larger than the shared memory.
        esatto::instant!(HUGE_EVENTS, "huge", text = "x".repeat(8 << 20));
        return;
    }
    let harness = Harness::new();
    let output = again.recorded(&harness, "huge", &["-o", "trace"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("because a program found its shared memory full"), "{told}");
    assert!(told.contains("No event was recorded: all of them were lost"), "{told}");
    assert_eq!(output.status.code(), Some(3), "{told}");
}
