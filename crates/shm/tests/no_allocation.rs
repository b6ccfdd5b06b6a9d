//! Counts allocations: between chunk boundaries a writer does not allocate.

#![cfg(not(esatto_loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use esatto_shm::{Arbiter, DeferredValue, ExhaustedPolicy, PrivateRegion, TraceWriter, abi::PageSize};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes all calls on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn event(writer: &mut TraceWriter, i: u64) {
    let mut packet = writer.new_packet();
    let mut message = packet.message();
    message.varint(8, i);
    let mut event = message.begin(11);
    event.string(23, "a slice");
    let mut annotation = event.begin(4);
    annotation.string(10, "key");
    annotation.varint(3, i);
}

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn packets_within_a_chunk_do_not_allocate() {
    let region = Arc::new(PrivateRegion::new(65536));
    let page_size = PageSize::new(32768).unwrap();
    let arbiter = Arbiter::new(region, page_size, Arc::new(())).unwrap();
    let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    event(&mut writer, 0);
    assert_eq!(allocations(|| (0..500).for_each(|i| event(&mut writer, i))), 0);
}

#[test]
fn deferred_values_in_their_chunk_allocate_only_once() {
    let region = Arc::new(PrivateRegion::new(65536));
    let page_size = PageSize::new(32768).unwrap();
    let arbiter = Arbiter::new(region, page_size, Arc::new(())).unwrap();
    let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    let mut packet = || {
        writer.begin_packet();
        let late = writer.reserve_deferred().unwrap();
        writer.message().unwrap().varint(8, 1);
        writer.end_packet();
        writer.fill_deferred(late, DeferredValue::EMPTY);
    };
    packet();
    assert_eq!(allocations(|| (0..500).for_each(|_| packet())), 0);
}

#[test]
fn dropping_does_not_allocate() {
    let region = Arc::new(PrivateRegion::new(8192));
    let arbiter = Arbiter::new(region, PageSize::DEFAULT, Arc::new(())).unwrap();
    let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    (0..1000).for_each(|i| event(&mut writer, i));
    assert!(writer.is_dropping());
    assert_eq!(allocations(|| (0..1000).for_each(|i| event(&mut writer, i))), 0);
    let mut null = TraceWriter::null();
    assert_eq!(allocations(|| (0..1000).for_each(|i| event(&mut null, i))), 0);
}

#[test]
fn reused_chunks_allocate_only_for_their_requests() {
    let region = Arc::new(PrivateRegion::new(8192));
    let arbiter = Arbiter::new(region, PageSize::DEFAULT, Arc::new(())).unwrap();
    let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    event(&mut writer, 0);
    while arbiter.poll_outgoing().is_some() {}
    // A flush without content is free. A chunk costs its entry in the request.
    assert_eq!(allocations(|| writer.flush()), 1);
    assert_eq!(allocations(|| writer.flush()), 0);
}
