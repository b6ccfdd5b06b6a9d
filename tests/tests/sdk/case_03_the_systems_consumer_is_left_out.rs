//! If sessions of the system are left out, a session in any backend is one in the process. A
//! session that names the system still works.

use esatto::{Backend, Session, Tracing};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!([ours, theirs] record, check);

fn record(recorder: &Recorder) {
    let builder = Tracing::builder().system().in_process().without_system_sessions();
    let _tracing = builder.categories(CATEGORIES).start().expect("starts");
    recorder.wait_for_data_source("track_event");
    let any = Session::start(Backend::Any, esatto::track_events(1024)).expect("starts");
    assert_eq!(recorder.harness().state().sessions_started, 0, "it is in the process");
    let system = recorder.start(esatto::track_events(1024));
    assert_eq!(recorder.harness().state().sessions_started, 1);
    esatto::instant!(APP, "seen");
    recorder.finish_as("any", any);
    recorder.finish(system);
}

fn check(trace: &Trace) {
    for trace in [trace, &trace.other("any")] {
        let [slices] = trace.query(["select name from slice"]);
        assert_eq!(slices.len(), 1);
    }
}
