//! An allocator that counts the service's memory.
//!
//! A program that installs [`Counting`] as its allocator knows how many bytes this thread has
//! allocated inside of [`count`]. Bytes that were freed since then, at any place, do not count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// An allocator that remembers of each piece of memory whether it was allocated inside of
/// [`count`].
#[derive(Debug)]
pub struct Counting;

std::thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<u64> = const { Cell::new(0) };
}

/// Marks of the two kinds of memory, in front of each piece.
const OURS: u64 = 0x0073_696d_756c_6174;
const SERVICES: u64 = 0x7365_7276_6963_6521;

/// Runs a function and counts its allocations. Returns the bytes that are held afterwards (0
/// without the allocator).
pub fn count(run: impl FnOnce()) -> u64 {
    let before = INSIDE.with(|inside| inside.replace(true));
    run();
    INSIDE.with(|inside| inside.set(before));
    held()
}

/// Runs a function of the simulator inside of [`count`], without counting its allocations.
pub fn uncounted<T>(run: impl FnOnce() -> T) -> T {
    let before = INSIDE.with(|inside| inside.replace(false));
    // The compiler takes for granted that no allocator reads `INSIDE`, and would leave the change
    // out.
    let result = INSIDE.with(|inside| {
        black_box(inside);
        let result = run();
        black_box(inside);
        result
    });
    INSIDE.with(|inside| inside.set(before));
    result
}

/// Bytes that were allocated inside and not freed.
pub fn held() -> u64 {
    HELD.with(Cell::get)
}

/// Forgets the held bytes, after a panic.
pub fn reset() {
    INSIDE.with(|inside| inside.set(false));
    HELD.with(|held| held.set(0));
}

fn with_room(layout: Layout) -> (Layout, usize) {
    let room = layout.align().max(16);
    let whole = Layout::from_size_align(layout.size() + room, room).expect("a size that exists, and a little more");
    (whole, room)
}

// SAFETY: each piece is one of the system's with room in front, and is given back as the same
// piece.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { allocate(layout, false) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { allocate(layout, true) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (whole, room) = with_room(layout);
        // SAFETY: `allocate` returned a pointer so many bytes into the piece.
        let base = unsafe { pointer.sub(room) };
        // SAFETY: the room is at least 8 bytes, 16-aligned, and was written by `allocate`.
        let mark = unsafe { base.cast::<u64>().read() };
        if mark == SERVICES {
            HELD.with(|held| held.set(held.get().saturating_sub(layout.size() as u64)));
        }
        // SAFETY: the piece that the system gave for this layout.
        unsafe { System.dealloc(base, whole) };
    }
}

/// # Safety
///
/// As `GlobalAlloc::alloc`.
unsafe fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    let (whole, room) = with_room(layout);
    // SAFETY: the size is not 0.
    let base = unsafe { if zeroed { System.alloc_zeroed(whole) } else { System.alloc(whole) } };
    if base.is_null() {
        return base;
    }
    let inside = INSIDE.with(Cell::get);
    // SAFETY: room for 8 bytes, aligned.
    unsafe { base.cast::<u64>().write(if inside { SERVICES } else { OURS }) };
    if inside {
        HELD.with(|held| held.set(held.get() + layout.size() as u64));
    }
    // SAFETY: the piece is that much longer than the requested size.
    unsafe { base.add(room) }
}
