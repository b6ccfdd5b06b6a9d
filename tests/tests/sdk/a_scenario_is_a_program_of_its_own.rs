//! The rig itself, and the least that a program does.

use esatto::TraceConfig;
use esatto_tests::sdk::{Backend, Recorder, Scenario, Trace};

esatto::categories! {
    static APP = "app";
}

mod records {
    esatto_tests::scenario!(super::record, super::check);
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let _main = esatto::slice!(APP, "main", answer = 42);
    std::thread::spawn(|| esatto::instant!(APP, "elsewhere")).join().expect("it ends");
    drop(_main);
    recorder.note("pid", std::process::id());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices, pids] = trace.query([
        "select slice.name as name, category, utid, extract_arg(arg_set_id, 'debug.answer') as answer
            from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) order by ts",
        "select pid from process where pid > 0",
    ]);
    let of = |row: usize| (slices[row].text("name"), slices[row].text("category"));
    assert_eq!((of(0), of(1)), (("main", "app"), ("elsewhere", "app")));
    assert_ne!(slices[0].int("utid"), slices[1].int("utid"));
    assert_eq!(slices[0].int("answer"), 42);
    assert_eq!(pids[0].int("pid").to_string(), trace.fact("pid"));
    assert!(!trace.packets().is_empty() && trace.read().slices.len() == 2);
}

mod outlives_its_service {
    esatto_tests::scenario!([ours, theirs] super::restart, super::check);
}

fn restart(recorder: &Recorder) {
    let tracing = recorder.connect(CATEGORIES);
    recorder.stop_service();
    recorder.start_service();
    recorder.wait_for_data_source("track_event");
    record(recorder);
    drop(tracing);
}

mod may_die {
    use super::*;
    esatto_tests::scenario!(Scenario::new(die).dying());
}

fn die(recorder: &Recorder) {
    assert!(matches!(recorder.on(), Backend::InProcess | Backend::Ours | Backend::Theirs));
    std::process::exit(3);
}

mod leaves_several_traces {
    use super::*;
    esatto_tests::scenario!(several, check_several);
}

fn several(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    for name in ["trace", "second"] {
        let session = recorder.start(esatto::track_events(1024));
        esatto::instant!(APP, dynamic: name);
        recorder.finish_as(name, session);
    }
    recorder.finish_as("third", recorder.start(TraceConfig { duration_ms: Some(60_000), ..esatto::track_events(64) }));
}

fn check_several(trace: &Trace) {
    for (trace, name) in [(trace, "trace"), (&trace.other("second"), "second")] {
        let [slices] = trace.query(["select name from slice"]);
        assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), [name]);
    }
    let [empty] = trace.other("third").query(["select name from slice"]);
    assert!(empty.is_empty());
}
