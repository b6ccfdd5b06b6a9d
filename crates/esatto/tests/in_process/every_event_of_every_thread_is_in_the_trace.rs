use esatto::{CounterTrack, Flow, Track};
use esatto_trace::{CounterValue, EventType};

use super::{read, record};

esatto::categories! { static WORK = "work"; }

static DEPTH: CounterTrack = CounterTrack::new("depth");

const THREADS: u64 = 4;
const ROUNDS: u64 = 2000;

fn rounds(thread: u64) {
    let track = Track::with_name("lane", thread);
    for round in 0..ROUNDS {
        let flow = Flow::process(thread << 32 | round);
        let _outer = esatto::slice!(WORK, "outer", thread = thread, round = round);
        {
            let _inner = esatto::slice!(WORK, "inner", |event| event.flow(flow));
            esatto::counter!(WORK, &DEPTH, thread * ROUNDS + round);
        }
        esatto::begin!(WORK, track: &track, "async", |event| event.end_flow(flow));
        esatto::end!(WORK, track: &track, result = "fine");
        if round % 256 == 0 {
            // Lets the service take chunks while others write.
            std::thread::yield_now();
        }
    }
}

#[test]
fn events_are_in_order_and_complete() {
    let session = record(&WORK);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            std::thread::Builder::new()
                .name(format!("worker-{thread}"))
                .spawn_scoped(scope, move || rounds(thread))
                .expect("starts");
        }
    });
    let trace = read(session);
    for thread in 0..THREADS {
        let name = format!("worker-{thread}");
        let tid = trace.threads.iter().find(|t| t.name.as_deref() == Some(&name)).expect("described").tid;
        let events: Vec<_> = trace.events.iter().filter(|e| e.annotations_of(thread) && e.tid == Some(tid)).collect();
        let seen: Vec<u64> = events.iter().map(|e| e.round()).collect();
        assert!(seen.iter().copied().eq(0..ROUNDS), "{name}: {} rounds, not all in order", seen.len());
    }
    let count = |name: &str| trace.slices.iter().filter(|s| s.name.as_deref() == Some(name)).count() as u64;
    for name in ["outer", "inner", "async"] {
        assert_eq!(count(name), THREADS * ROUNDS, "{name}");
    }
    assert!(trace.slices.iter().all(|s| s.duration_ns.is_some_and(|d| d > 0)), "a slice without end");
    assert!(trace.slices.iter().filter(|s| s.name.as_deref() == Some("inner")).all(|s| s.depth == 1));
    assert_eq!(trace.flows.len() as u64, THREADS * ROUNDS);
    let mut values: Vec<i64> = trace
        .events
        .iter()
        .filter(|e| e.event_type == EventType::Counter)
        .map(|e| match e.counter {
            Some(CounterValue::Int(v)) => v,
            other => panic!("{other:?}"),
        })
        .collect();
    values.sort_unstable();
    assert!(values.iter().copied().eq(0..(THREADS * ROUNDS) as i64));
}

/// The parts of an event that the assertions use.
trait Work {
    fn annotations_of(&self, thread: u64) -> bool;
    fn round(&self) -> u64;
}

impl Work for esatto_trace::Event {
    fn annotations_of(&self, thread: u64) -> bool {
        self.annotation("thread") == Some(thread)
    }

    fn round(&self) -> u64 {
        self.annotation("round").expect("a round")
    }
}

trait Annotated {
    fn annotation(&self, name: &str) -> Option<u64>;
}

impl Annotated for esatto_trace::Event {
    fn annotation(&self, name: &str) -> Option<u64> {
        self.annotations.iter().find(|a| a.name == name).and_then(|a| match a.value {
            esatto_trace::AnnotationValue::Uint(v) => Some(v),
            _ => None,
        })
    }
}
