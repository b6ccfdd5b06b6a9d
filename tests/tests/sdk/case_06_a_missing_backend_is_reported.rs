//! A missing backend, and (case 7) one that the program's policy forbids. The error callback comes,
//! then start and stop complete, and all other calls complete.

use std::sync::mpsc;

use esatto::{Backend, ErrorKind, Session, Tracing};
use esatto_tests::DEADLINE;
use esatto_tests::sdk::{Recorder, Scenario};

mod case_06_unsupported_backend {
    use super::*;
    esatto_tests::scenario!([in_process] Scenario::new(unsupported));
}

mod case_07_the_policy_forbids {
    use super::*;
    esatto_tests::scenario!(Scenario::new(forbidden));
}

fn unsupported(recorder: &Recorder) {
    // Connected to nothing.
    fails(Backend::Any, "not connected to any service");
    let nobody = recorder.path("nobody").display().to_string();
    fails(Backend::Socket(nobody.clone()), &nobody);
    let error = Session::open(Backend::Socket(String::new())).expect_err("no address");
    assert_eq!(error.kind(), ErrorKind::Address, "{error}");
}

fn forbidden(recorder: &Recorder) {
    let refused = recorder.backend();
    let policy = move |backend: &Backend| *backend != refused;
    let builder = recorder.builder().in_process().session_policy(policy);
    let _tracing = builder.start().expect("starts");
    // The first stays.
    let _again = Tracing::builder().session_policy(|_| true).start().expect("starts");
    fails(recorder.backend(), "does not allow");
    let other = Session::open(Backend::Socket("/nowhere".into())).expect("allowed, though nobody is there");
    assert!(!other.stats().wait().expect_err("nobody").to_string().contains("does not allow"));
}

fn fails(backend: Backend, why: &str) {
    let (said, heard) = mpsc::channel();
    let session = Session::open(backend).expect("it fails later");
    let tell = |name: &'static str| {
        let said = said.clone();
        move |result: Result<(), esatto::Error>| said.send((name, result.expect_err("fails").kind())).expect("heard")
    };
    session.on_stop(tell("stop"));
    session.on_start(tell("start"));
    let on_error = said.clone();
    session.on_error(move |error| on_error.send(("error", error.kind())).expect("heard"));
    let mut order: Vec<_> = (0..3).map(|_| heard.recv_timeout(DEADLINE).expect("told")).collect();
    order.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(order, ["error", "start", "stop"].map(|name| (name, ErrorKind::Disconnected)));
    let results = [
        session.record(esatto::track_events(64)).wait(),
        session.flush(None).wait(),
        session.stop_recording().wait(),
        session.read().wait().map(drop),
        session.chunks().collect::<Result<Vec<_>, _>>().map(drop),
        session.stats().wait().map(drop),
        session.service_state().wait().map(drop),
        session.capabilities().wait().map(drop),
        session.clone_session(esatto::CloneOf::Id(1)).wait().map(drop),
    ];
    for result in results {
        let error = result.expect_err("there is no service");
        assert!(error.is_disconnected() && error.to_string().contains(why), "{error}");
    }
}
