//! An allocator that counts by trace points, as profilers of memory do: also in the threads of this
//! crate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use esatto::{Backend, CounterTrack, Session, SessionConfig, Tracing};
use esatto_trace::Trace;

esatto::categories! {
    static MEMORY = "memory";
}

static ALLOCATED: CounterTrack = CounterTrack::new("allocated");
static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: passes all calls on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Ordering::Relaxed) {
            let bytes = i64::try_from(layout.size()).expect("is small");
            esatto::counter!(MEMORY, &ALLOCATED, BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes);
        }
        // SAFETY: as of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const THREADS: usize = 4;
const ROUNDS: usize = 2000;

fn record() -> Vec<u8> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("starts");
    let config = SessionConfig::new().buffer_size_kb(32 << 10).stall();
    let session = Session::start(Backend::InProcess, config).expect("starts");
    IS_COUNTING.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let _slice = esatto::slice!(MEMORY, "round", round);
                    std::hint::black_box(vec![0_u8; 100 + round % 100]);
                }
            });
        }
    });
    // While the counter is on, so that the control thread counts what it allocates for the stop.
    let trace = session.stop().expect("stops");
    IS_COUNTING.store(false, Ordering::Relaxed);
    trace
}

#[test]
fn all_its_events_are_recorded() {
    let (done, answer) = mpsc::channel();
    thread::spawn(move || done.send(record()));
    // A thread that waits for its own lock waits for ever.
    let trace = answer.recv_timeout(Duration::from_secs(120)).expect("the recording ends");
    let trace = Trace::read(&trace[..]);
    let rounds = trace.slices.iter().filter(|slice| slice.name.as_deref() == Some("round")).count();
    assert_eq!(rounds, THREADS * ROUNDS);
    let counts = trace.events.iter().filter(|event| event.counter.is_some()).count();
    assert!(counts >= THREADS * ROUNDS, "{counts}");
}
