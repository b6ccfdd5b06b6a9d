//! A clone by name is a snapshot with the uuid of its session, which continues. An unknown name is
//! an error that says so.

use esatto::{CloneOf, ErrorKind, Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    session.record(SessionConfig::new().buffer_size_kb(1024).name("flight recorder")).wait().expect("starts");
    esatto::instant!(APP, "before");

    let clone = Session::open(recorder.backend()).expect("opens");
    let error = clone.clone_session(CloneOf::Name("nobody".into())).wait().expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Session, "{error}");
    // In the words of the service, which differ.
    let text = error.to_string().to_lowercase();
    assert!(text.contains("not found") || text.contains("no such session"), "{error}");
    let by_name = clone.clone_session(CloneOf::Name("flight recorder".into())).wait().expect("clones");
    esatto::instant!(APP, "after");
    recorder.save("clone", clone.read().wait().expect("reads"));

    // Again, by number, with the same connection.
    let state = clone.service_state().wait().expect("told");
    let number = state.tracing_sessions.iter().find(|s| s.unique_session_name.is_some()).and_then(|s| s.id);
    let by_id = clone.clone_session(CloneOf::Id(number.expect("a number"))).wait().expect("clones");
    recorder.save("second", clone.read().wait().expect("reads"));
    // One half is the session's, the other that of the snapshot.
    assert_eq!(by_name.uuid as u64, by_id.uuid as u64);
    assert_ne!(by_name.uuid, by_id.uuid);
    recorder.note("uuid", format!("{:032x}", by_name.uuid));
    // It does not block another session.
    clone.record(SessionConfig::new()).wait().expect("starts");
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let uuid = "select replace(str_value, '-', '') as uuid from metadata where name = 'trace_uuid'";
    let [names, original] = trace.query(["select name from slice order by ts", uuid]);
    assert_eq!(names.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["before", "after"]);
    let [names, clone] = trace.other("clone").query(["select name from slice", uuid]);
    assert_eq!(names.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["before"]);
    assert_eq!(clone[0].text("uuid"), trace.fact("uuid"));
    assert_eq!(original[0].text("uuid")[16..], trace.fact("uuid")[16..]);
    let second: Vec<_> = trace.other("second").read().events.into_iter().filter_map(|event| event.name).collect();
    assert_eq!(second, ["before", "after"]);
}
