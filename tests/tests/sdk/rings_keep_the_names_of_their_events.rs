//! A ring of a session inside the program keeps the names of the events that it keeps, however much
//! was overwritten.

use std::thread;

use esatto::{CloneOf, Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Scenario, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(
    // Events before the first names in the ring; a thread that was slow may have no others.
    [in_process] Scenario::new(record)
        .check(check)
        .tolerating(&["tokenizer_skipped_packets", "traced_buf_incremental_sequences_dropped"])
);

const RING_KB: u32 = 1024;
const THREADS: u64 = 2;
/// Many times as much as the ring holds.
const SLICES: u64 = 300_000;
/// About two thirds of what the ring holds.
const KEPT: usize = 20_000;

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    session.record(SessionConfig::new().buffer_size_kb(RING_KB).stall().name("ring")).wait().expect("starts");
    for name in ["snapshot", "trace"] {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for n in 0..SLICES / THREADS {
                        let _slice = esatto::slice!(APP, "work", number = n);
                    }
                });
            }
        });
        if name == "snapshot" {
            let clone = Session::open(recorder.backend()).expect("opens");
            clone.clone_session(CloneOf::Name("ring".into())).wait().expect("clones");
            recorder.save(name, clone.read().wait().expect("reads"));
        }
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    for trace in [trace, &trace.other("snapshot")] {
        let [slices, overwritten] = trace.query([
            "select slice.name as name, category, thread_track.id is not null as has_thread
                from slice left join thread_track on slice.track_id = thread_track.id",
            "select value from stats where name = 'traced_buf_chunks_overwritten'",
        ]);
        assert!(overwritten[0].int("value") > 0, "the ring is too large for the test");
        assert!(slices.len() > KEPT, "{} slices", slices.len());
        for slice in &slices {
            assert_eq!((slice.text("name"), slice.text("category"), slice.int("has_thread")), ("work", "app", 1));
        }
    }
}
