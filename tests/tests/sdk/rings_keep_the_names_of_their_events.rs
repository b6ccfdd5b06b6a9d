//! A ring keeps the names of the events that it keeps, however much was overwritten.

use std::thread;
use std::time::Duration;

use esatto::{CloneOf, Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Scenario, Trace};

esatto::categories! {
    static APP = "app";
}

const RING_KB: u32 = 1024;
const THREADS: u64 = 2;

/// Events before the first names in the ring; a thread that was slow may have no others.
const WITHOUT_NAMES: [&str; 2] = ["tokenizer_skipped_packets", "traced_buf_incremental_sequences_dropped"];

mod while_programs_write_fast {
    use super::*;
    // Perfetto's service would have to ask for the names more often than once in a millisecond.
    esatto_tests::scenario!(
        [in_process, ours] Scenario::new(record_fast).check(check_fast).tolerating(&WITHOUT_NAMES)
    );
}

mod while_programs_write_slowly {
    use super::*;
    esatto_tests::scenario!([ours, theirs] Scenario::new(record_slowly).check(check_slow).tolerating(&WITHOUT_NAMES));
}

mod while_programs_write_in_bursts {
    use super::*;
    esatto_tests::scenario!(
        [in_process, ours] Scenario::new(record_burst).check(check_burst).tolerating(&[
            WITHOUT_NAMES[0],
            WITHOUT_NAMES[1],
            // They do not wait for the service.
            "traced_buf_trace_writer_packet_loss",
            "traced_buf_sequence_packet_loss",
            // Of chunks that the ring has overwritten.
            "traced_buf_patches_failed",
        ])
    );
}

/// The daemon asks for names only once in 10 ms, in which programs write such a ring many times.
const SMALL_RING_KB: u32 = 128;

/// Many times as much as the ring holds.
const FAST_SLICES: u64 = 300_000;
/// About two thirds of what the ring holds, and about half of what it holds of a second.
const SLOW_SLICES: u64 = 20_000;

fn record_fast(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    session.record(SessionConfig::new().buffer_size_kb(RING_KB).stall().name("ring")).wait().expect("starts");
    for name in ["snapshot", "trace"] {
        write(FAST_SLICES / THREADS);
        if name == "snapshot" {
            let clone = Session::open(recorder.backend()).expect("opens");
            clone.clone_session(CloneOf::Name("ring".into())).wait().expect("clones");
            recorder.save(name, clone.read().wait().expect("reads"));
        }
    }
    recorder.finish(session);
}

fn record_burst(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    session.record(SessionConfig::new().buffer_size_kb(SMALL_RING_KB)).wait().expect("starts");
    write(FAST_SLICES / THREADS);
    recorder.finish(session);
}

/// The names come again between the rounds: they are sent once a second.
fn record_slowly(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    session.record(SessionConfig::new().buffer_size_kb(RING_KB).stall()).wait().expect("starts");
    for _ in 0..4 {
        write(SLOW_SLICES / THREADS);
        thread::sleep(Duration::from_millis(1100));
    }
    recorder.finish(session);
}

fn write(slices: u64) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..slices {
                    let _slice = esatto::slice!(APP, "work", number = n);
                }
            });
        }
    });
}

fn check_fast(trace: &Trace) {
    for trace in [trace, &trace.other("snapshot")] {
        // A tenth of the ring: the daemon asks at most once in 10 ms, and a machine may be slow.
        check(trace, 3_000);
    }
}

fn check_burst(trace: &Trace) {
    // A third of what the ring holds.
    check(trace, 1_000);
}

fn check_slow(trace: &Trace) {
    check(trace, SLOW_SLICES as usize * 9 / 10);
}

fn check(trace: &Trace, least: usize) {
    let [slices, overwritten] = trace.query([
        "select slice.name as name, category, thread_track.id is not null as has_thread
            from slice left join thread_track on slice.track_id = thread_track.id",
        "select value from stats where name = 'traced_buf_chunks_overwritten'",
    ]);
    assert!(overwritten[0].int("value") > 0, "the ring is too large for the test");
    assert!(slices.len() > least, "{} slices", slices.len());
    println!("{} slices", slices.len());
    for slice in &slices {
        assert_eq!((slice.text("name"), slice.text("category"), slice.int("has_thread")), ("work", "app", 1));
    }
}
