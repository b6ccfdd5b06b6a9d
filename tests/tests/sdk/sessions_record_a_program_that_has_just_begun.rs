//! A session that starts right after the program has begun to connect records this program.

use esatto::Session;
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

const ROUNDS: usize = 10;

fn record(recorder: &Recorder) {
    for round in 0..ROUNDS {
        let tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
        let session = match round % 2 {
            0 => recorder.start(esatto::track_events(1024)),
            _ => {
                let session = Session::open(recorder.backend()).expect("opens");
                session.set_up(esatto::SessionConfig::new().deferred_start()).wait().expect("set up");
                session.start_recording().wait().expect("starts");
                session
            }
        };
        esatto::instant!(APP, "first", round = round);
        recorder.finish_as(&name(round), session);
        drop(tracing);
        assert!(esatto::shutdown(), "the next round connects anew");
    }
}

/// The last trace is the one that is judged first.
fn name(round: usize) -> String {
    match round + 1 {
        ROUNDS => "trace".to_owned(),
        _ => format!("round {round}"),
    }
}

fn check(trace: &Trace) {
    for round in 0..ROUNDS {
        let events = trace.other(&name(round)).read().events;
        let names: Vec<_> = events.into_iter().filter_map(|event| event.name).collect();
        assert_eq!(names, ["first"], "round {round}");
    }
}
