//! §22: `tracebox`.

use crate::rows::output_of;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, esatto_bin, tp};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `tracebox` without addresses in the environment.
fn tracebox(harness: &Harness) -> Command {
    let mut command = Command::new(esatto_bin());
    command.arg0("tracebox").current_dir(harness.folder());
    command.env_remove("PERFETTO_PRODUCER_SOCK_NAME").env_remove("PERFETTO_CONSUMER_SOCK_NAME");
    command
}

/// `tracebox` with the addresses of this harness.
fn tracebox_here(harness: &Harness) -> Command {
    let mut command = harness.command(esatto_bin());
    command.arg0("tracebox");
    command
}

#[test]
fn without_arguments_it_shows_its_usage() {
    let output = output_of(&mut tracebox(&Harness::new()), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: tracebox"), "{output:?}");
}

#[test]
fn the_first_argument_may_be_a_program() {
    for program in ["perfetto", "traced", "traced_probes", "traced_relay"] {
        let output = output_of(tracebox(&Harness::new()).args([program, "--version"]), "");
        assert!(output.status.success(), "{program}: {output:?}");
    }
}

#[test]
fn mistakes_are_those_of_perfetto() {
    let output = output_of(tracebox(&Harness::new()).args(["-t", "5x", "-o", "t"]), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--time argument is invalid"), "{output:?}");
    let output = output_of(tracebox(&Harness::new()).args(["--system-sockets", "--system-sockets", "-t", "1s"]), "");
    assert_eq!(output.status.code(), Some(1));
}

/// The daemons are parts of the process, so none is left.
#[test]
fn it_starts_daemons_of_its_own() {
    let harness = Harness::new();
    let output = output_of(tracebox_here(&harness).args(["-t", "300ms", "-o", "t"]), "");
    assert!(output.status.success(), "{output:?}");
    let info = output_of(Command::new(esatto_bin()).arg("info").arg(harness.path("t")), "");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("  system_info ") && info.contains("  cpu_info "), "{info}");
    assert!(std::os::unix::net::UnixStream::connect(harness.consumer_socket()).is_err());
}

/// Perfetto's `tracebox` does not see them.
#[test]
fn it_records_the_programs_of_a_service_that_runs() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 2000 };
        let _application = harness.application(Implementation::Ours, workload);
        harness.wait_for_producers(1);
        harness.wait_for_data_source("track_event");
        let config = "duration_ms: 1000 buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } } \
                      data_sources { config { name: \"linux.system_info\" } }";
        let output = output_of(tracebox_here(&harness).args(["-c", "-", "--txt", "-o", "t"]), config);
        assert!(output.status.success(), "{output:?}");
        let rows = tp::rows(&harness.path("t"), "select count(*) as n from slice");
        assert!(rows[0].int("n") > 10);
        let info = output_of(Command::new(esatto_bin()).arg("info").arg(harness.path("t")), "");
        assert!(String::from_utf8_lossy(&info.stdout).contains("cpu_info"), "the probes were started");
        Ok(())
    });
}

/// Perfetto's `tracebox` returns 0 whatever happens.
#[test]
fn the_exit_code_is_that_of_the_recording() {
    let harness = Harness::new();
    harness.write("refused.cfg", crate::rows::REFUSED);
    let output = output_of(tracebox_here(&harness).args(["-c", "refused.cfg", "--txt", "-o", "t"]), "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn in_the_background_it_ends_with_the_recording() {
    let harness = Harness::new();
    let output = output_of(tracebox_here(&harness).args(["-D", "-t", "500ms", "-o", "t"]), "");
    assert!(output.status.success(), "{output:?}");
    let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a pid");
    esatto_tests::wait_until("the process ends", || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
    assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
}
