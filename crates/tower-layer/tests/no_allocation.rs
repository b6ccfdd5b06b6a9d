//! Checks that a call does not allocate while no session records it. The allocator of this test
//! counts.

use core::convert::Infallible;
use core::future::{Future, ready};
use core::pin::pin;
use core::task::{Context, Waker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use esatto_tower::{ClientLayer, RPC, ServerLayer};
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

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

type Body = Empty<&'static [u8]>;

#[test]
fn a_call_that_is_not_recorded_does_not_allocate() {
    let answer = |_: Request<Body>| ready(Ok::<_, Infallible>(Response::new(Body::new())));
    let mut service = ClientLayer::new(&RPC).layer(ServerLayer::new(&RPC).layer(service_fn(answer)));
    let mut call = || {
        let before = ALLOCATIONS.with(Cell::get);
        let response = pin!(service.call(Request::new(Body::new()))).poll(&mut Context::from_waker(Waker::noop()));
        assert!(response.is_ready());
        ALLOCATIONS.with(Cell::get) - before
    };
    // The first one registers the category.
    call();
    assert_eq!((call(), call()), (0, 0));
}
