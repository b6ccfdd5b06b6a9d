//! Counts allocations: writing does not allocate once a sink has its memory.

#![allow(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use esatto_protozero::{
    Delegate, Fields, Filled, HeapBuffer, Message, ScatteredWriter, SliceBuffer, StaticBuffer, View, encode_into, kind,
};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

/// Writes fields of every kind, with lengths of both sizes, and nested messages.
fn write(root: &mut Message<'_>) {
    for round in 0..4 {
        root.varint(1, 1 << (16 * round));
        root.sint(2, -5);
        root.double(3, 0.5);
        root.string(4, "a string that is not very long");
        root.packed_varints(5, (0..100).map(|v| v * v));
        let mut outer = root.begin(6);
        outer.scattered_bytes(7, &[&[1; 100], &[2; 100]]);
        let mut inner = outer.begin(8);
        for _ in 0..10 {
            inner.begin(9).begin(10).begin(11).bytes(12, &[3; 30]);
        }
    }
}

/// Delegate that provides four chunks in turn.
struct Pool {
    chunks: [Option<Box<[u8]>>; 4],
    bytes: usize,
    lengths: u32,
    filled: u32,
}

impl Delegate for Pool {
    type Buffer = Box<[u8]>;

    fn acquire(&mut self, _min_len: usize) -> Option<Box<[u8]>> {
        self.chunks.iter_mut().find_map(Option::take)
    }

    fn release(&mut self, buffer: Box<[u8]>, filled: Filled) {
        self.bytes += filled.used;
        *self.chunks.iter_mut().find(|chunk| chunk.is_none()).expect("it has come from here") = Some(buffer);
    }

    fn defer_length(&mut self, _offset: usize) -> Option<u32> {
        self.lengths += 1;
        Some(self.lengths)
    }

    fn fill_length(&mut self, _number: u32, _bytes: [u8; 4]) {
        self.filled += 1;
    }
}

#[test]
fn the_counter_sees_allocations() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn heap_buffers_allocate_when_they_grow() {
    let mut buffer = HeapBuffer::new();
    assert!(allocations(|| write(&mut buffer.message())) > 0);
    let len = buffer.len();
    for _ in 0..3 {
        buffer.clear();
        assert_eq!(allocations(|| write(&mut buffer.message())), 0);
    }
    // Not all lengths of the first message were shortened, because the buffer was growing.
    assert!(buffer.len() <= len);
}

#[test]
fn reused_chunks_allocate_nothing() {
    let chunks = [(); 4].map(|()| Some(vec![0; 256].into_boxed_slice()));
    let mut writer = ScatteredWriter::new(Pool { chunks, bytes: 0, lengths: 0, filled: 0 });
    let count = allocations(|| {
        for _ in 0..10 {
            write(&mut writer.message());
        }
        writer.flush();
    });
    assert_eq!((count, writer.dropped()), (0, 0));
    let pool = writer.into_delegate();
    assert!(pool.bytes > 10_000 && pool.lengths > 100);
    assert_eq!(pool.lengths, pool.filled);
}

#[test]
fn borrowed_memory_is_enough() {
    let mut memory = vec![0; 10_000];
    let mut owned = Box::new(StaticBuffer::<10_000>::new());
    let mut uninit = Box::new([const { core::mem::MaybeUninit::uninit() }; 10_000]);
    let count = allocations(|| {
        write(&mut SliceBuffer::new(&mut memory).message());
        write(&mut owned.message());
        assert!(encode_into(&mut *uninit, |mut m| write(&mut m)).is_ok());
        // Even if the message does not fit.
        assert!(encode_into(&mut uninit[..100], |mut m| write(&mut m)).is_err());
    });
    assert_eq!((count, owned.dropped()), (0, 0));
}

#[test]
fn reading_allocates_nothing() {
    let mut buffer = HeapBuffer::new();
    write(&mut buffer.message());
    let bytes = buffer.as_slice();
    let count = allocations(|| {
        assert_eq!(Fields::new(bytes).count(), 24);
        assert_eq!(View::new(bytes).last::<kind::Sint32>(2), Some(-5));
        assert_eq!(View::new(bytes).repeated::<kind::Uint64>(5).count(), 400);
    });
    assert_eq!(count, 0);
}
