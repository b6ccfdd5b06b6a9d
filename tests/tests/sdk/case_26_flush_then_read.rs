//! After a flush, a running session can read all packets that were recorded before it; the parts
//! make up one file. Case 30: this includes the last event of another thread, even if that thread
//! sleeps.

use std::sync::mpsc;

use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn names(trace: &[u8]) -> Vec<String> {
    esatto_trace::events(trace).into_iter().filter_map(|event| event.name).collect()
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let (wake, sleep) = mpsc::channel::<()>();
    let (asleep, is_asleep) = mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        let slice = esatto::slice!(APP, "before sleep");
        drop(slice);
        esatto::begin!(APP, "asleep");
        asleep.send(()).expect("heard");
        sleep.recv().expect("woken");
        esatto::end!(APP);
    });
    is_asleep.recv().expect("asleep");
    esatto::instant!(APP, "early");
    session.flush(None).wait().expect("flushes");
    let mut file = session.read().wait().expect("reads");
    let mut early = names(&file);
    early.sort_unstable();
    assert_eq!(early, ["asleep", "before sleep", "early"]);
    // Also the end of the slice.
    assert_eq!(esatto_trace::events(&file).len(), 4);

    esatto::instant!(APP, "late");
    session.flush(None).wait().expect("flushes");
    let part = session.read().wait().expect("reads");
    file.extend(&part);
    wake.send(()).expect("it sleeps");
    sleeper.join().expect("it ends");
    session.stop_recording().wait().expect("stops");
    file.extend(session.read().wait().expect("reads"));
    recorder.save("trace", file);
}

fn check(trace: &Trace) {
    let [slices] = trace.query(["select name, dur from slice order by name"]);
    let found: Vec<_> = slices.iter().map(|row| (row.text("name"), row.int("dur") > 0)).collect();
    assert_eq!(found, [("asleep", true), ("before sleep", true), ("early", false), ("late", false)]);
}
