//! A nonsensical configuration: the error callback gets the service's text, and every waiting call
//! fails with it.

use std::sync::mpsc;

use esatto::schema::TraceConfig;
use esatto::{ErrorKind, Session, SessionConfig};
use esatto_tests::DEADLINE;
use esatto_tests::sdk::{Recorder, Scenario};

esatto_tests::scenario!(Scenario::new(record));

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(&[]);
    // A data source without a buffer to write to.
    let invalid = || TraceConfig { buffers: Vec::new(), ..esatto::track_events(64) };
    let (said, heard) = mpsc::channel();
    let session = Session::open(recorder.backend()).expect("opens");
    for (name, session, said) in [("start", &session, said.clone()), ("stop", &session, said.clone())] {
        let tell = move |result: Result<(), esatto::Error>| {
            said.send((name, result.expect_err("it fails").kind())).expect("heard");
        };
        if name == "start" { session.on_start(tell) } else { session.on_stop(tell) }
    }
    session.on_error(move |error| said.send(("error", error.kind())).expect("heard"));
    let error = session.record(invalid()).wait().expect_err("the service refuses it");
    assert_eq!(error.kind(), ErrorKind::Session, "{error}");
    // In the service's own words, which differ.
    let text = error.to_string();
    assert!(text.starts_with("the tracing session failed: ") && text.contains("buffer"), "{text}");
    let order: Vec<_> = (0..3).map(|_| heard.recv_timeout(DEADLINE).expect("told")).collect();
    assert_eq!(order, ["error", "start", "stop"].map(|name| (name, ErrorKind::Session)));

    // Also before it starts. A late call gets the error at once.
    let error = session.set_up(SessionConfig::from(invalid()).deferred_start()).wait().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Session, "{error}");
    let (said, heard) = mpsc::channel();
    session.on_error(move |error| said.send(error.kind()).expect("heard"));
    assert_eq!(heard.recv_timeout(DEADLINE), Ok(ErrorKind::Session));
    // The session is as good as new.
    session.record(esatto::track_events(64)).wait().expect("starts");
    session.stop_recording().wait().expect("stops");
}
