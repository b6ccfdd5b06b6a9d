//! Eight instances of track events record at a time. A ninth gets nothing, delays no other session,
//! and has its turn when another is over.

use esatto::TraceConfig;
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}

esatto_tests::scenario!(record, check);

/// Two instances, as services let a user have five sessions.
fn two() -> TraceConfig {
    let mut config = esatto::track_events(1024);
    config.data_sources.push(config.data_sources[0].clone());
    config
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let mut sessions: Vec<_> = (0..4).map(|_| recorder.start(two())).collect();
    assert_eq!(APP.recordings(), 8);
    let ninth = recorder.start(esatto::track_events(1024));
    assert_eq!(APP.recordings(), 8, "it has no place");
    esatto::instant!(APP, "for eight");
    recorder.finish_as("ninth", ninth);
    recorder.finish_as("early", sessions.remove(0));
    let late = recorder.start(esatto::track_events(1024));
    assert_eq!(APP.recordings(), 7);
    esatto::instant!(APP, "for seven");
    recorder.finish(late);
    for (number, session) in sessions.into_iter().enumerate() {
        recorder.finish_as(&format!("whole {number}"), session);
    }
}

fn check(trace: &Trace) {
    let count = |trace: &Trace| {
        let [events] = trace.query(["select name, count() as n from slice group by name order by name"]);
        events.iter().map(|row| (row.text("name").to_owned(), row.int("n"))).collect::<Vec<_>>()
    };
    let (eight, seven) = (|n| ("for eight".to_owned(), n), |n| ("for seven".to_owned(), n));
    assert_eq!(count(&trace.other("ninth")), []);
    assert_eq!(count(&trace.other("early")), [eight(2)]);
    assert_eq!(count(trace), [seven(1)]);
    for number in 0..3 {
        assert_eq!(count(&trace.other(&format!("whole {number}"))), [eight(2), seven(2)]);
    }
}
