use std::sync::mpsc;
use std::time::Duration;

use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let (written, wait) = mpsc::channel();
    let (end, go_on) = mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        esatto::begin!(APP, "ended");
        esatto::end!(APP);
        esatto::begin!(APP, "open");
        written.send(()).unwrap();
        // Does not trace while the session is flushed.
        let _ = go_on.recv();
    });
    wait.recv().unwrap();
    session.flush(Some(Duration::from_secs(10))).wait().expect("is flushed");
    let trace = session.read().wait().expect("is read");
    recorder.save("trace", trace);
    drop(end);
    worker.join().unwrap();
}

fn check(trace: &Trace) {
    let [slices] = trace.query(["select name, dur from slice order by name"]);
    let slices: Vec<_> = slices.iter().map(|row| (row.text("name"), row.int("dur") >= 0)).collect();
    assert_eq!(slices, [("ended", true), ("open", false)], "the last begin and the last end");
}
