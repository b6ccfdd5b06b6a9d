//! `esatto traced`: standard socket names, in the foreground, ended by SIGTERM.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Lab, Peer, Side, Signal, esatto_bin, skip, wait_until};
use std::os::unix::net::UnixStream;

const SHORT: Workload = Workload { threads: 1, rounds: 50, pause_us: 100 };

#[test]
fn a_signal_ends_it_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let lab = Lab::new();
        let mut service = lab.service(Side::Ours);
        let mut recording = lab.record(Side::Ours, "trace", CONFIG_WITHOUT_DEBUG);
        lab.wait_for_sessions(1);
        service.signal(signal);
        service.wait_ok();
        assert!(!service.log().contains("panicked"));
        assert!(!recording.program.wait().success(), "the recording has lost its service");
    }
}

#[test]
fn it_says_where_it_listens() {
    let lab = Lab::new();
    let mut service = lab.service(Side::Ours);
    for socket in [lab.producer_socket(), lab.consumer_socket()] {
        service.wait_for_log(socket.to_str().expect("a path"));
    }
}

#[test]
fn it_is_also_what_runs_under_the_name_of_perfettos() {
    let lab = Lab::new();
    let link = lab.path("traced");
    std::os::unix::fs::symlink(esatto_bin(), &link).expect("the folder is empty");
    let mut traced = lab.start("traced", &mut lab.command(&link));
    traced.wait_for_log("Started traced, listening on");
    assert_eq!(lab.state().sessions, 0);
    let mut version = lab.start("version", lab.command(&link).arg("--version"));
    version.wait_ok();
    assert!(version.log().starts_with("Esatto v"), "{}", version.log());
}

#[test]
fn it_replaces_the_sockets_of_one_that_was_killed() {
    let lab = Lab::new();
    let mut first = lab.service(Side::Ours);
    first.kill();
    assert!(lab.producer_socket().exists(), "nobody has tidied up");
    let mut command = lab.command(esatto_bin());
    let _second = lab.start("traced", command.arg("traced"));
    wait_until("the second one takes connections", || UnixStream::connect(lab.consumer_socket()).ok());
    assert_eq!(lab.state().sessions, 0);
}

#[test]
fn it_listens_on_several_producer_sockets_and_abstract_ones() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let lab = Lab::new();
        let abstract_name = format!("@esatto-test-{}", std::process::id());
        let both = format!("{},{abstract_name}", lab.producer_socket().display());
        let mut command = lab.command(esatto_bin());
        let _service = lab.start("traced", command.arg("traced").env("PERFETTO_PRODUCER_SOCK_NAME", both));
        wait_until("it takes connections", || UnixStream::connect(lab.consumer_socket()).ok());
        let mut recording = lab.record(Side::Ours, "trace", CONFIG_WITHOUT_DEBUG);
        let mut one = lab.application(Side::Ours, SHORT);
        let mut command = lab.application_command(Side::Ours, SHORT);
        let mut other = lab.start("producer", command.env("PERFETTO_PRODUCER_SOCK_NAME", &abstract_name));
        one.wait_ok();
        other.wait_ok();
        let expected = [&one, &other].map(|program| Expected { pid: program.pid(), workload: SHORT, details: false });
        workload::assert_whole(&lab.stop(&mut recording), &expected);
        Ok(())
    });
}

#[test]
fn five_recordings_at_a_time_are_whole() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let lab = Lab::new();
        let _service = lab.service(Side::Ours);
        let mut recordings: Vec<_> =
            (0..5).map(|i| lab.record(Side::Ours, &format!("trace-{i}"), CONFIG_WITHOUT_DEBUG)).collect();
        lab.wait_for_sessions(5);
        let mut application = lab.start("producer", lab.application_command(Side::Ours, SHORT).arg("5"));
        application.wait_ok();
        for recording in &mut recordings {
            let expected = Expected { pid: application.pid(), workload: SHORT, details: false };
            workload::assert_whole(&lab.stop(recording), &[expected]);
        }
        Ok(())
    });
}
