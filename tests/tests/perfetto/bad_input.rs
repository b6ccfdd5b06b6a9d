//! Accidents around a recording: clear message, right status, nothing lost that was on disk.

use crate::rows::{SHORT, output_of};
use esatto_tests::{Harness, Implementation, Signal};

#[test]
fn two_recordings_into_one_file() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let mut first = harness.start("perfetto", &mut harness.perfetto(&["-t", "1h", "-o", "t"]));
    harness.wait_for_sessions(1);
    let output = output_of(&mut harness.perfetto(&["-t", "200ms", "-o", "t"]), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another recording writes it"), "{output:?}");
    first.signal(Signal::INT);
    first.wait_ok();
    assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
}

#[test]
fn a_full_disk() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let output = output_of(&mut harness.perfetto(&["-t", "200ms", "-o", "/dev/full"]), "");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("Failed to write packets into /dev/full: No space left"), "{stderr}");
}

#[test]
fn a_service_that_dies_leaves_no_empty_file() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let mut service = harness.service(Implementation::Ours);
    let mut program = harness.start("perfetto", &mut harness.perfetto(&["-t", "1h", "-o", "t"]));
    harness.wait_for_sessions(1);
    service.kill();
    assert_eq!(program.wait().code(), Some(1));
    assert!(program.log().contains("Disconnected from the traced service"), "{}", program.log());
    assert!(!harness.path("t").exists());
}

#[test]
fn a_service_that_dies_leaves_what_it_has_streamed() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let mut service = harness.service(Implementation::Ours);
    harness
        .write("c.cfg", format!("write_into_file: true file_write_period_ms: 100 {}", SHORT.replace("200", "3600000")));
    let mut program = harness.start("perfetto", &mut harness.perfetto(&["-c", "c.cfg", "--txt", "-o", "t"]));
    harness.wait_for_sessions(1);
    esatto_tests::wait_until("the file has a part", || {
        std::fs::metadata(harness.path("t")).ok().filter(|meta| meta.len() > 0).map(drop)
    });
    service.kill();
    assert_eq!(program.wait().code(), Some(1));
    assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
}

#[test]
fn a_reader_that_goes_away() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let mut command = harness.command("/bin/sh");
    let script = "{ \"$@\"; echo \"status $?\" >&2; } | true";
    command.args(["-c", script, "sh"]).arg(esatto_tests::esatto_bin());
    command.args(["perfetto", "-t", "500ms", "-o", "-"]);
    let output = output_of(&mut command, "");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("Broken pipe") && stderr.contains("status 1"), "{stderr}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let service = harness.service(Implementation::Ours);
    let mut program = harness.start("perfetto", &mut harness.perfetto(&["-t", "1h", "-o", "t"]));
    harness.wait_for_sessions(1);
    // The service does not answer, so the first signal is not enough.
    service.signal(Signal::STOP);
    program.signal(Signal::INT);
    program.wait_for_log("SIGINT/SIGTERM received");
    // Signals at the same moment are one request.
    std::thread::sleep(std::time::Duration::from_millis(500));
    program.signal(Signal::INT);
    assert!(!program.wait().success());
    service.signal(Signal::CONT);
}

#[test]
fn names_of_a_service_do_not_act_on_the_terminal() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    harness.write("c.cfg", format!("unique_session_name: \"\\033[2J\" {}", SHORT.replace("200", "3600000")));
    let _program = harness.start("perfetto", &mut harness.perfetto(&["-c", "c.cfg", "--txt", "-o", "t"]));
    harness.wait_for_sessions(1);
    let output = output_of(&mut harness.perfetto(&["--query"]), "");
    assert!(output.status.success() && !output.stdout.contains(&0x1b), "{output:?}");
}
