//! Trace points do not allocate, lock or call the kernel between chunk boundaries. This test counts
//! the allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use esatto::{Backend, CounterTrack, Flow, Session, Tracing, Track, track_events};

esatto::categories! { static HOT = "hot"; }

static COUNTER: CounterTrack = CounterTrack::new("counter");

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn events(track: &Track, number: u64) {
    let _slice = esatto::slice!(HOT, "slice", number = number, text = "fifteen bytes!!");
    esatto::instant!(HOT, "instant", |event| event.flow(Flow::process(number)));
    esatto::counter!(HOT, &COUNTER, number);
    esatto::begin!(HOT, track: track, "async");
    esatto::end!(HOT, track: track);
}

#[test]
fn between_chunk_boundaries_trace_points_do_not_allocate() {
    let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("connects");
    let session = Session::start(Backend::InProcess, track_events(4096)).expect("starts");
    assert!(tracing.wait_until_enabled(&HOT, Duration::from_secs(10)));
    let track = Track::with_name("track", 1);
    // Names, descriptors and tables.
    events(&track, 0);
    // A page is 4 KiB and these events take about 100 bytes, so at least ten rounds without a
    // boundary follow each flush.
    let mut quiet = 0;
    for round in 0..20 {
        tracing.flush(Duration::from_secs(10));
        events(&track, 0);
        let before = ALLOCATIONS.with(Cell::get);
        for number in 0..10 {
            events(&track, round * 10 + number);
        }
        quiet += u32::from(ALLOCATIONS.with(Cell::get) == before);
    }
    assert_eq!(quiet, 20, "rounds without an allocation");
    drop(session);
}
