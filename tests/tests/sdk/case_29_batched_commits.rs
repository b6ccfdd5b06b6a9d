//! Commits that are held back: a flush hands over what there is.

use std::time::Duration;

use esatto_tests::sdk::{Stage, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn record(stage: &Stage) {
    let hour = Duration::from_secs(3600);
    let _tracing = stage.builder().categories(CATEGORIES).batch_commits(hour).start().expect("starts");
    stage.wait_for_data_source("track_event");
    let session = stage.start(esatto::track_events(1024));
    // Several chunks, but not half of the memory.
    for number in 0..1000 {
        esatto::instant!(APP, "event", number = number);
    }
    session.flush(None).wait().expect("flushes");
    let mut trace = session.read().wait().expect("reads");
    assert_eq!(esatto_trace::events(&trace).len(), 1000);
    session.stop_recording().wait().expect("stops");
    trace.extend(session.read().wait().expect("reads"));
    stage.save("trace", trace);
}

fn check(trace: &Trace) {
    let [events] = trace.query(["select count(distinct extract_arg(arg_set_id, 'debug.number')) as n from slice"]);
    assert_eq!(events[0].int("n"), 1000);
}
