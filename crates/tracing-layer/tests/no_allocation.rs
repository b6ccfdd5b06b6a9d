//! Checks that spans and events do not allocate while no session records them, and not in the long
//! run while one does. The allocator of this test counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use esatto::{Backend, Session, Tracing, track_events};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes everything to the system's allocator.
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

fn work(number: u64) {
    let span = tracing::info_span!("sync", number, text = "fifteen bytes!!");
    span.in_scope(|| tracing::info_span!("inner").in_scope(|| ()));
    // As for a future: entered twice.
    let span = tracing::info_span!("async", number, debug = ?number);
    span.in_scope(|| ());
    span.in_scope(|| ());
}

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn spans_do_not_allocate() {
    let tracing = Tracing::builder().in_process().start().expect("connects");
    tracing::subscriber::set_global_default(esatto_tracing::subscriber()).expect("is the first");
    work(0);
    assert_eq!(allocations(|| (0..100).for_each(work)), 0, "without a session");

    let session = Session::start(Backend::InProcess, track_events(4096)).expect("starts");
    // Warm up names, descriptors and tables; each slot for spans keeps the memory that it once
    // needed.
    (0..1000).for_each(work);
    let mut quiet = 0;
    for round in 0..20 {
        tracing.flush(Duration::from_secs(10));
        work(round);
        quiet += u32::from(allocations(|| (0..2).for_each(work)) == 0);
    }
    assert_eq!(quiet, 20, "rounds without an allocation");
    session.stop().expect("stops");
    assert_eq!(allocations(|| (0..100).for_each(work)), 0, "after the session");
}
