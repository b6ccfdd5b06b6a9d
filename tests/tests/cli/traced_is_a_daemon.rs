//! `esatto traced`: standard socket names, in the foreground, ended by SIGTERM.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Signal, esatto_bin, skip, wait_until};
use std::os::unix::net::UnixStream;

const SHORT: Workload = Workload { threads: 1, rounds: 50, pause_us: 100 };

#[test]
fn a_signal_ends_it_after_the_recordings() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        Peer::Official.require()?;
        for (signal, recorder) in [(Signal::TERM, Implementation::Ours), (Signal::INT, Implementation::Theirs)] {
            let harness = Harness::new();
            let mut service = harness.service(Implementation::Ours);
            let mut recording = harness.record(recorder, "trace", CONFIG_WITHOUT_DEBUG);
            harness.wait_for_sessions(1);
            let mut application = harness.application(Implementation::Ours, SHORT);
            application.wait_ok();
            service.signal(signal);
            // The service ends the session and lets the recorder read it.
            let expected = Expected { pid: application.pid(), workload: SHORT, details: false };
            workload::assert_whole(&recording.finish(), &[expected]);
            service.wait_ok();
            assert!(!service.log().contains("panicked"));
        }
        Ok(())
    });
}

#[test]
fn its_help_and_errors_name_the_command_that_was_used() {
    for command in ["traced", "relay"] {
        let harness = Harness::new();
        let mut help = harness.start("help", harness.command(esatto_bin()).args([command, "--help"]));
        help.wait_ok();
        assert!(help.log().contains(&format!("esatto {command} [OPTIONS]")), "{}", help.log());
        let mut wrong = harness.start("wrong", harness.command(esatto_bin()).args([command, "--nothing"]));
        assert!(!wrong.wait().success());
        let want = format!("esatto {command}: unknown option --nothing (see esatto {command} --help)\n");
        assert_eq!(wrong.log(), want);
    }
}

#[test]
fn it_says_where_it_listens() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    for socket in [harness.producer_socket(), harness.consumer_socket()] {
        service.wait_for_log(socket.to_str().expect("a path"));
    }
}

#[test]
fn it_also_runs_under_the_name_of_perfettos_program() {
    let harness = Harness::new();
    let link = harness.path("traced");
    std::os::unix::fs::symlink(esatto_bin(), &link).expect("the folder is empty");
    let mut traced = harness.start("traced", &mut harness.command(&link));
    traced.wait_for_log("Started traced, listening on");
    assert_eq!(harness.state().sessions, 0);
    let mut version = harness.start("version", harness.command(&link).arg("--version"));
    version.wait_ok();
    assert!(version.log().starts_with("Esatto v"), "{}", version.log());
}

#[test]
fn it_replaces_the_sockets_of_one_that_was_killed() {
    let harness = Harness::new();
    let mut first = harness.service(Implementation::Ours);
    first.kill();
    assert!(harness.producer_socket().exists(), "nobody has tidied up");
    let mut command = harness.command(esatto_bin());
    let _second = harness.start("traced", command.arg("traced"));
    wait_until("the second one takes connections", || UnixStream::connect(harness.consumer_socket()).ok());
    assert_eq!(harness.state().sessions, 0);
}

#[test]
fn it_listens_on_several_producer_sockets_and_abstract_ones() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let abstract_name = format!("@esatto-test-{}", std::process::id());
        let both = format!("{},{abstract_name}", harness.producer_socket().display());
        let mut command = harness.command(esatto_bin());
        let _service = harness.start("traced", command.arg("traced").env("PERFETTO_PRODUCER_SOCK_NAME", both));
        wait_until("it takes connections", || UnixStream::connect(harness.consumer_socket()).ok());
        let mut recording = harness.record(Implementation::Ours, "trace", CONFIG_WITHOUT_DEBUG);
        let mut one = harness.application(Implementation::Ours, SHORT);
        let mut command = harness.application_command(Implementation::Ours, SHORT);
        let mut other = harness.start("producer", command.env("PERFETTO_PRODUCER_SOCK_NAME", &abstract_name));
        one.wait_ok();
        other.wait_ok();
        let expected = [&one, &other].map(|program| Expected { pid: program.pid(), workload: SHORT, details: false });
        workload::assert_whole(&harness.stop(&mut recording), &expected);
        Ok(())
    });
}

#[test]
fn five_recordings_at_a_time_are_whole() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut recordings: Vec<_> =
            (0..5).map(|i| harness.record(Implementation::Ours, &format!("trace-{i}"), CONFIG_WITHOUT_DEBUG)).collect();
        harness.wait_for_sessions(5);
        let mut application =
            harness.start("producer", harness.application_command(Implementation::Ours, SHORT).arg("5"));
        application.wait_ok();
        for recording in &mut recordings {
            let expected = Expected { pid: application.pid(), workload: SHORT, details: false };
            workload::assert_whole(&harness.stop(recording), &[expected]);
        }
        Ok(())
    });
}
