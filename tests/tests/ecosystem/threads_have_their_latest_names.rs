use std::time::Duration;

use esatto_tests::sdk::{Recorder, Trace};

use super::everything;

esatto::categories! { static APP = "app"; }

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(everything());
    let work = || {
        let slice = esatto::slice!(APP, "before");
        std::fs::write("/proc/thread-self/comm", "new name").expect("a thread may name itself");
        std::thread::sleep(Duration::from_millis(150));
        drop(slice);
        esatto::instant!(APP, "after");
    };
    std::thread::Builder::new().name("old name".into()).spawn(work).expect("starts").join().expect("ends");
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [rows] = trace.query(["select slice.name as name, thread.name as thread, utid from slice
        join thread_track on slice.track_id = thread_track.id join thread using (utid) order by ts"]);
    let found: Vec<_> = rows.iter().map(|row| (row.text("name"), row.text("thread"))).collect();
    assert_eq!(found, [("before", "new name"), ("after", "new name")]);
    assert_eq!(rows[0].int("utid"), rows[1].int("utid"));
}
