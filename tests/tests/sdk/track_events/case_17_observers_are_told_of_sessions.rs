use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use esatto::schema::trace_config::IncrementalStateConfig;
use esatto::{SessionObserver, Started, Stop, TraceConfig};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::wait_until;

use super::all;

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

/// The calls: name, instance, and true if the category was on.
static CALLS: Mutex<Vec<(&str, usize, bool)>> = Mutex::new(Vec::new());
static WRITERS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

struct Observer;

fn called(what: &'static str, instance: usize) {
    CALLS.lock().unwrap().push((what, instance, APP.is_enabled()));
    esatto::instant!(APP, dynamic: what, instance = instance);
}

impl SessionObserver for Observer {
    fn on_setup(&self, session: &Started<'_>) {
        called("setup", session.instance());
    }

    fn on_start(&self, session: &Started<'_>) {
        assert_eq!(session.config().enabled_categories.len(), 1);
        called("start", session.instance());
    }

    fn on_stop(&self, stop: Stop) {
        called("stop", stop.instance());
        // Continues to record for a while, on another thread.
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            esatto::instant!(APP, "late");
            stop.complete();
        });
        WRITERS.lock().unwrap().push(writer);
    }

    fn will_clear_incremental_state(&self, instance: usize) {
        called("clear", instance);
    }
}

/// Stops at once, and panics. The session still ends only when the other observer lets it end.
struct Hasty;

impl SessionObserver for Hasty {
    fn on_stop(&self, _: Stop) {
        panic!("the observer's own fault");
    }
}

fn calls() -> Vec<(&'static str, usize, bool)> {
    std::mem::take(&mut CALLS.lock().unwrap())
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let (observing, hasty) = (esatto::observe_sessions(Observer), esatto::observe_sessions(Hasty));
    assert_eq!(esatto::session_count(), 0);
    let first = recorder.start(TraceConfig {
        incremental_state_config: Some(IncrementalStateConfig { clear_period_ms: Some(50), ..Default::default() }),
        ..all(|_| {})
    });
    wait_until("a clear", || CALLS.lock().unwrap().iter().any(|call| call.0 == "clear").then_some(()));
    let calls_of_first = calls();
    assert_eq!(calls_of_first[..2], [("setup", 0, false), ("start", 0, true)]);
    assert!(calls_of_first[2..].iter().all(|call| *call == ("clear", 0, true)));
    let second = recorder.start(all(|_| {}));
    assert_eq!(esatto::session_count(), 2);
    recorder.finish(first);
    let without_clears: Vec<_> = calls().into_iter().filter(|call| call.0 != "clear").collect();
    assert_eq!(without_clears, [("setup", 1, true), ("start", 1, true), ("stop", 0, true)]);
    drop((observing, hasty));
    recorder.finish_as("second", second);
    assert_eq!(calls(), [], "nobody is told any more");
    assert_eq!(esatto::session_count(), 2);
    WRITERS.lock().unwrap().drain(..).for_each(|writer| writer.join().unwrap());
}

fn check(trace: &Trace) {
    let [slices] =
        trace.query(["select name, extract_arg(arg_set_id, 'debug.instance') as instance from slice order by ts"]);
    let names: Vec<_> = slices.iter().map(|row| row.text("name")).filter(|name| *name != "clear").collect();
    // The set-up of the second session, and its start, are events of the first.
    assert_eq!(names, ["start", "setup", "start", "stop", "late"]);
    let [slices] = trace.other("second").query(["select name from slice where name != 'clear' order by ts"]);
    assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["start", "stop", "late"]);
}
