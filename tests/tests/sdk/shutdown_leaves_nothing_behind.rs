//! After `shutdown` there is no thread and no connection, the recorded data is in the trace, and
//! tracing can start again.

use core::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esatto_tests::sdk::{Backend, Recorder, Trace};

esatto::categories! {
    static APP = "shutdown";
}

mod again_and_again {
    esatto_tests::scenario!(super::record, super::check);
}

const ROUNDS: usize = 3;

/// How long the end of tracing waits for the service, which a busy machine may delay.
const PATIENCE: Duration = Duration::from_secs(1);

/// The names of the threads of this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is procfs");
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}

/// Sockets, eventfds and the like.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("there is procfs").count()
}

fn record(recorder: &Recorder) {
    assert!(!esatto::shutdown(), "there is nothing to end");
    let before = descriptors();
    for round in 0..ROUNDS {
        let tracing = recorder.connect(CATEGORIES);
        let session = recorder.start(esatto::track_events(1024));
        let (asleep, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // A thread that never comes back, but sleeps, and one that traces all the time.
            let sleeper = scope.spawn(|| {
                esatto::instant!(APP, "asleep", round = round);
                asleep.store(true, Ordering::Release);
                while !done.load(Ordering::Acquire) {
                    std::thread::park();
                }
                esatto::instant!(APP, "after the end");
            });
            let busy = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    esatto::instant!(APP, "busy");
                    std::thread::yield_now();
                }
            });
            esatto::instant!(APP, "awake", round = round);
            // Round 0 and 1 end while the session starts. In the last one every thread has traced.
            while descriptors() == before || !asleep.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // In the process the trace ends with the service.
            if recorder.on() == Backend::InProcess || round + 1 == ROUNDS {
                std::thread::sleep(Duration::from_millis(20));
                recorder.finish_as(if round + 1 == ROUNDS { "trace" } else { "early" }, session);
            }
            let begin = Instant::now();
            let complete = esatto::shutdown();
            let elapsed = begin.elapsed();
            assert!(complete || elapsed >= PATIENCE, "round {round}: not complete after {elapsed:?}");
            assert!(!APP.is_enabled());
            done.store(true, Ordering::Release);
            sleeper.thread().unpark();
            // The kernel lists a thread for a moment after it was joined.
            let is_ours = |name: &String| name.trim_end() == "esatto";
            esatto_tests::wait_until("no thread is left", || (!threads().iter().any(is_ours)).then_some(()));
            sleeper.join().expect("it ends");
            busy.join().expect("it ends");
        });
        assert!(!esatto::shutdown());
        drop(tracing);
        assert_eq!(descriptors(), before, "round {round}");
    }
}

fn check(trace: &Trace) {
    let [events] =
        trace.query(["select name, count() as n from slice where name != 'busy' group by name order by name"]);
    let events: Vec<_> = events.iter().map(|row| (row.text("name"), row.int("n"))).collect();
    assert_eq!(events, [("asleep", 1), ("awake", 1)]);
}
