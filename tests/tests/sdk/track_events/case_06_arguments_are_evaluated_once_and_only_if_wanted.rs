use std::sync::atomic::{AtomicU32, Ordering};

use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! { static APP = "app"; static OFF = "off", tags: ["slow"]; }
esatto_tests::scenario!(record, check);

static ARGUMENTS: AtomicU32 = AtomicU32::new(0);
static BODIES: AtomicU32 = AtomicU32::new(0);

fn argument() -> u32 {
    ARGUMENTS.fetch_add(1, Ordering::Relaxed)
}

fn body(event: &mut esatto::Event<'_>) {
    event.annotate("body", BODIES.fetch_add(1, Ordering::Relaxed));
}

fn counts() -> (u32, u32) {
    (ARGUMENTS.swap(0, Ordering::Relaxed), BODIES.swap(0, Ordering::Relaxed))
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let trace = || {
        let _slice = esatto::slice!(APP, "slice", argument = argument(), |event| body(event));
        esatto::instant!(OFF, "never", argument = argument(), |event| body(event));
        counts()
    };
    assert_eq!(trace(), (0, 0), "no session");
    let first = recorder.start(esatto::track_events(1024));
    assert_eq!(trace(), (1, 1));
    let second = recorder.start(esatto::track_events(1024));
    assert_eq!(trace(), (1, 2), "arguments once, what writes to the event once for each session");
    recorder.finish(first);
    assert_eq!(trace(), (1, 1));
    recorder.finish_as("second", second);
    assert_eq!(trace(), (0, 0));
}

fn check(trace: &Trace) {
    for trace in [trace, &trace.other("second")] {
        let [slices] = trace.query(["select name, dur, extract_arg(arg_set_id, 'debug.argument') as argument,
            extract_arg(arg_set_id, 'debug.body') as body from slice"]);
        assert_eq!(slices.len(), 2);
        assert!(slices.iter().all(|row| row.int("dur") >= 0 && !row.is_null("argument") && !row.is_null("body")));
    }
}
