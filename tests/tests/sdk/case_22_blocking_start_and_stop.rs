//! Blocking start and stop, also with an empty configuration; repeatedly, each time with a new
//! set-up.

use esatto::{ErrorKind, Session, SessionConfig, TraceConfig};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("the control thread runs");
    // Upstream hangs here.
    let error = session.start_recording().wait().expect_err("nothing is set up");
    assert_eq!(error.kind(), ErrorKind::State);
    session.stop_recording().wait().expect("what does not run is stopped");

    for round in ["first", "second", "third"] {
        session.set_up(SessionConfig::new().buffer_size_kb(1024)).wait().expect("set up");
        session.start_recording().wait().unwrap_or_else(|error| panic!("{round}: {error}"));
        assert_eq!(session.start_recording().wait().expect_err("it runs").kind(), ErrorKind::State);
        assert_eq!(session.set_up(SessionConfig::new()).wait().expect_err("it runs").kind(), ErrorKind::State);
        esatto::instant!(APP, dynamic: round);
        session.stop_recording().wait().unwrap_or_else(|error| panic!("{round}: {error}"));
        session.stop_recording().wait().expect("twice is no mistake");
        recorder.save(round, session.read().wait().expect("it is read"));
        // The configuration is used up.
        assert_eq!(session.start_recording().wait().expect_err("used up").kind(), ErrorKind::State);
    }
    esatto::instant!(APP, "not recorded");

    session.set_up(SessionConfig::new().deferred_start()).wait().expect("the service has it");
    esatto::instant!(APP, "not yet recorded");
    session.start_recording().wait().expect("starts");
    esatto::instant!(APP, "deferred");
    session.stop_recording().wait().expect("stops");
    recorder.save("trace", session.read().wait().expect("it is read"));

    // Empty except for the buffer, without which a service refuses it.
    let empty = TraceConfig { buffers: esatto::track_events(64).buffers, ..TraceConfig::default() };
    recorder.finish_as("empty", recorder.start(empty));
}

fn check(trace: &Trace) {
    let names = |name: &str| {
        let events = trace.other(name).read().events;
        events.into_iter().filter_map(|event| event.name).collect::<Vec<_>>()
    };
    for round in ["first", "second", "third"] {
        assert_eq!(names(round), [round]);
    }
    assert!(names("empty").is_empty());
    let [slices] = trace.query(["select name from slice"]);
    assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["deferred"]);
}
