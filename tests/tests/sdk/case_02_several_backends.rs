//! Initialised twice with different backends, both work; twice with the same, nothing happens: each
//! session gets each event once.

use esatto::{Backend, Session, Tracing};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!([ours, theirs] record, check);

fn record(recorder: &Recorder) {
    let _first = Tracing::builder().in_process().start().expect("starts");
    let _second = recorder.connect(CATEGORIES);
    let _again = Tracing::builder().in_process().system().start().expect("starts");
    let inside = Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts");
    let system = recorder.start(esatto::track_events(1024));
    assert_eq!(APP.recordings(), 2);
    esatto::instant!(APP, "for both");
    let producers = recorder.harness().state().producers.len();
    assert_eq!(producers, 1, "one connection");
    recorder.finish_as("inside", inside);
    esatto::instant!(APP, "for the system's");
    recorder.finish(system);
}

fn check(trace: &Trace) {
    let names = |rows: Vec<esatto_tests::tp::Row>| rows.iter().map(|r| r.text("name").to_owned()).collect::<Vec<_>>();
    let [inside] = trace.other("inside").query(["select name from slice"]);
    assert_eq!(names(inside), ["for both"]);
    let [system] = trace.query(["select name from slice order by ts"]);
    assert_eq!(names(system), ["for both", "for the system's"]);
}
