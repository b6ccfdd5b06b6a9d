//! Trace points and tracks before the SDK is initialised: no crash, and nothing is recorded.

use esatto::{CounterTrack, Flow, Track};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
static QUEUE: CounterTrack = CounterTrack::new("queue");
esatto_tests::scenario!(record, check);

fn emit(round: &'static str) {
    let track = Track::with_name("lane", 7);
    let _slice = esatto::slice!(APP, dynamic: round, number = 1);
    esatto::instant!(APP, "instant", |event| event.flow(Flow::process(1)));
    esatto::begin!(APP, track: &track, "on a lane");
    esatto::end!(APP, track: &track);
    esatto::counter!(APP, &QUEUE, 3);
}

fn record(recorder: &Recorder) {
    emit("too early");
    std::thread::spawn(|| emit("too early")).join().expect("it ends");
    assert!(!APP.is_enabled());
    // A slice that is open while all begins is not ended in the trace.
    let early = esatto::slice!(APP, "too early");
    let _tracing = recorder.connect(&[]);
    emit("before the session");
    let session = recorder.start(esatto::track_events(1024));
    drop(early);
    emit("in time");
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices, counters] = trace.query(["select name from slice order by ts", "select value from counter"]);
    let names: Vec<_> = slices.iter().map(|row| row.text("name")).collect();
    assert_eq!(names, ["in time", "instant", "on a lane"]);
    assert_eq!(counters.len(), 1);
}
