//! Checks that calls that no session records allocate no more than calls of a program without an
//! adapter. The allocator of this test counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use esatto::{Backend, Session, SessionConfig, TraceConfig, Tracing};
use esatto_ipc::server::{Context, ServerConnection, ServerLimits};
use esatto_ipc::{Channel, Status, Stream};

/// Allocations of threads that call or serve.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static COUNTS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

struct Counting;

// SAFETY: passes everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.with(std::cell::Cell::get) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
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

#[esatto::trace_rpc(category = "rpc.allocations")]
trait Shop {
    async fn get(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    async fn note(&self, context: &Context, request: TraceConfig);
}

struct Shelf;

impl Shop for Shelf {
    async fn get(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        Ok(request)
    }

    async fn note(&self, _: &Context, _: TraceConfig) {}
}

#[test]
fn a_call_that_is_not_recorded_does_not_allocate_for_hooks() {
    let (ours, theirs) = Stream::pair().expect("a pair");
    let server = thread::spawn(move || {
        COUNTS.set(true);
        ServerConnection::new(theirs, shop::ServeAsync::new(Shelf), ServerLimits::default()).block();
    });
    let client = shop::Client::new(&Channel::new(ours));
    let request = TraceConfig::default();
    let calls = || {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        COUNTS.set(true);
        for _ in 0..10 {
            client.get(&request).wait().expect("is answered");
            client.note(&request).send().expect("is sent");
        }
        client.get(&request).wait().expect("is answered");
        COUNTS.set(false);
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    // Buffers grow at first.
    let least = |rounds| (0..rounds).map(|_| calls()).min().expect("a round");
    let without = least(20);
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    assert!(esatto_rpc_trace::install());
    let other = SessionConfig::new().categories(["another"]).without_categories(["*"]);
    let session = Session::start(Backend::InProcess, other).expect("starts");
    // The first call of each method registers its category.
    assert_eq!((least(20), without > 0), (without, true));
    session.stop().expect("stops");
    client.channel().close();
    server.join().expect("ends");
}
