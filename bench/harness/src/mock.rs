//! The mock writer: the least that a trace point with shared memory has to do, without any of what
//! makes it a library.
//!
//! It loads the category's word, and reads the clock once per event. It writes into a chunk of 4
//! KiB, which the thread holds, of a ring of 256 KiB in a memfd. It writes the bytes that Esatto
//! writes for the same event, with the time as a difference and the lengths filled in afterwards.
//! It stores the number of packets with release ordering. A full chunk is handed over by a push
//! into a locked list, and the next one taken by a compare-exchange. There is no service: the ring
//! is emptied between batches. So there are no sessions, no names to announce, nothing is checked,
//! and it never runs out of memory.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::hint::black_box;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::batch::{Batch, Case};
use crate::floors::boot_ns;
#[cfg(target_arch = "x86_64")]
use crate::floors::ticks;
use crate::operation::{Operation, TEXT};

/// The mock by clock and by operation.
pub const MOCKS: &[Case] = &[
    #[cfg(target_arch = "x86_64")]
    mock("mock writer, TSC, pair", Operation::Pair, pair::<Tsc>),
    #[cfg(target_arch = "x86_64")]
    mock("mock writer, TSC, pair with u64 and 15-byte string", Operation::Arguments, arguments::<Tsc>),
    #[cfg(target_arch = "x86_64")]
    mock("mock writer, TSC scaled, pair", Operation::Pair, pair::<Scaled>),
    #[cfg(target_arch = "x86_64")]
    mock("mock writer, TSC scaled, pair with u64 and 15-byte string", Operation::Arguments, arguments::<Scaled>),
    mock("mock writer, BOOTTIME, pair", Operation::Pair, pair::<BootTime>),
    mock("mock writer, BOOTTIME, pair with u64 and 15-byte string", Operation::Arguments, arguments::<BootTime>),
];

const fn mock(name: &'static str, operation: Operation, run: fn(&mut Batch)) -> Case {
    Case { name, events: 0, ..Case::new(operation, run) }
}

const RING: usize = 256 * 1024;
const CHUNK: usize = 4096;
/// State, number of packets.
const HEADER: usize = 8;
/// More than any event takes, and the bytes that a store of a whole word writes beyond it.
const MAX_EVENT: usize = 96;

const FREE: u32 = 0;
const BEING_WRITTEN: u32 = 1;

/// Non-zero while the category is recorded.
static CATEGORY: AtomicU32 = AtomicU32::new(1);
/// Full chunks.
static FINISHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Where the search for a free chunk begins.
static NEXT: AtomicU32 = AtomicU32::new(0);

trait Clock {
    fn now() -> u64;
}

#[cfg(target_arch = "x86_64")]
struct Tsc;

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    #[inline(always)]
    fn now() -> u64 {
        ticks()
    }
}

/// Ticks made nanoseconds by a line that another thread might replace.
#[cfg(target_arch = "x86_64")]
struct Scaled;

#[cfg(target_arch = "x86_64")]
impl Clock for Scaled {
    #[inline(always)]
    fn now() -> u64 {
        use core::sync::atomic::AtomicU64;
        static BASE_TICKS: AtomicU64 = AtomicU64::new(0);
        static BASE_NS: AtomicU64 = AtomicU64::new(0);
        /// Nanoseconds per tick, with 32 binary places.
        static SLOPE: AtomicU64 = AtomicU64::new(1 << 30);
        let since = ticks().wrapping_sub(BASE_TICKS.load(Ordering::Relaxed));
        let ns = (u128::from(since) * u128::from(SLOPE.load(Ordering::Relaxed))) >> 32;
        BASE_NS.load(Ordering::Relaxed).wrapping_add(ns as u64)
    }
}

struct BootTime;

impl Clock for BootTime {
    #[inline(always)]
    fn now() -> u64 {
        boot_ns()
    }
}

fn pair<C: Clock>(batch: &mut Batch) {
    batch.time(|_| {
        if CATEGORY.load(Ordering::Relaxed) != 0 {
            event::<C>(|event| event.put(0x0150_0118_0148, 6));
        }
        if CATEGORY.load(Ordering::Relaxed) != 0 {
            event::<C>(|event| event.put(0x0118_0248, 4));
        }
    });
    drain();
}

fn arguments<C: Clock>(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        if CATEGORY.load(Ordering::Relaxed) != 0 {
            event::<C>(|event| {
                event.put(0x0150_0118_0148, 6);
                event.nested(0x22, |event| {
                    event.put(0x18_0108, 3);
                    event.varint(i);
                });
                event.nested(0x22, |event| {
                    event.put(0x32_0208, 3);
                    event.varint(text.len() as u64);
                    event.bytes(text.as_bytes());
                });
            });
        }
        if CATEGORY.load(Ordering::Relaxed) != 0 {
            event::<C>(|event| event.put(0x0118_0248, 4));
        }
    });
    drain();
}

/// State of a thread.
struct Writer {
    chunk: Cell<*mut u8>,
    at: Cell<*mut u8>,
    end: Cell<*mut u8>,
    packets: Cell<u32>,
    last: Cell<u64>,
}

thread_local! {
    static WRITER: Writer = const {
        Writer {
            chunk: Cell::new(ptr::null_mut()),
            at: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
            packets: Cell::new(0),
            last: Cell::new(0),
        }
    };
}

/// Frees the chunk of a thread that ends, or the ring would be used up by threads that have
/// measured.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        let chunk = WRITER.with(|writer| writer.chunk.replace(ptr::null_mut()));
        state(ring(), chunk.addr() - ring().addr()).store(FREE, Ordering::Release);
    }
}

thread_local! {
    static RELEASE: Release = const { Release };
}

/// Writes an event: size, timestamp, flags, and the event's own message.
#[inline(always)]
fn event<C: Clock>(body: impl FnOnce(&mut Cursor)) {
    WRITER.with(|writer| {
        let now = C::now();
        let delta = now.wrapping_sub(writer.last.replace(now));
        if writer.end.get().addr() - writer.at.get().addr() < MAX_EVENT {
            writer.next_chunk();
        }
        let begin = writer.at.get();
        // SAFETY: `MAX_EVENT` bytes of the thread's chunk follow, and no event is as long.
        let mut event = unsafe { Cursor { at: begin.add(1) } };
        event.put(0x40, 1);
        event.varint(delta);
        event.put(0x0268, 2);
        event.nested(0x5a, body);
        // SAFETY: the first of these bytes.
        unsafe { begin.write((event.at.addr() - begin.addr() - 1) as u8) };
        writer.at.set(event.at);
        let packets = writer.packets.get() + 1;
        writer.packets.set(packets);
        // SAFETY: the second word of the chunk; all access to it is atomic.
        let count = unsafe { AtomicU32::from_ptr(writer.chunk.get().cast::<u32>().add(1)) };
        count.store(packets, Ordering::Release);
    });
}

impl Writer {
    #[cold]
    #[inline(never)]
    fn next_chunk(&self) {
        let ring = ring();
        if self.chunk.get().is_null() {
            // Only now is it dropped with the thread.
            RELEASE.with(|_| {});
        } else {
            finished().push(self.chunk.get().addr() - ring.addr());
        }
        let chunks = (RING / CHUNK) as u32;
        let mut index = NEXT.load(Ordering::Relaxed);
        let offset = loop {
            let offset = (index % chunks) as usize * CHUNK;
            let state = state(ring, offset);
            if state.compare_exchange(FREE, BEING_WRITTEN, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                break offset;
            }
            index = index.wrapping_add(1);
        };
        NEXT.store(index.wrapping_add(1), Ordering::Relaxed);
        // SAFETY: within the ring.
        let chunk = unsafe { ring.add(offset) };
        self.chunk.set(chunk);
        // SAFETY: within the chunk.
        self.at.set(unsafe { chunk.add(HEADER) });
        // SAFETY: after the chunk.
        self.end.set(unsafe { chunk.add(CHUNK) });
        self.packets.set(0);
    }
}

/// Frees the full chunks, as a service would. Not timed.
fn drain() {
    for offset in finished().drain(..) {
        state(ring(), offset).store(FREE, Ordering::Release);
    }
}

fn finished() -> MutexGuard<'static, Vec<usize>> {
    FINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state(ring: *mut u8, offset: usize) -> &'static AtomicU32 {
    // SAFETY: the first word of a chunk of the ring, which stays mapped; all access to it is
    // atomic.
    unsafe { AtomicU32::from_ptr(ring.add(offset).cast()) }
}

/// The memory, mapped as long as the process lives.
fn ring() -> *mut u8 {
    struct Ring(NonNull<u8>);
    // SAFETY: an address; the chunks' states decide which thread writes where.
    unsafe impl Send for Ring {}
    // SAFETY: as above.
    unsafe impl Sync for Ring {}
    static MEMORY: OnceLock<Ring> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| {
        let file = memfd_create("mock", MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&file, RING as u64).expect("room");
        // SAFETY: a new mapping, wherever there is room.
        let at = unsafe { mmap(ptr::null_mut(), RING, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) };
        Ring(NonNull::new(at.expect("an address").cast()).expect("not null"))
    });
    memory.0.as_ptr()
}

/// Where an event is written. All within `MAX_EVENT` bytes that the thread owns.
struct Cursor {
    at: *mut u8,
}

impl Cursor {
    #[inline(always)]
    fn put(&mut self, word: u64, len: usize) {
        // SAFETY: see the type; a whole word is stored, of which `len` bytes stay.
        unsafe {
            self.at.cast::<u64>().write_unaligned(word);
            self.at = self.at.add(len);
        }
    }

    #[inline(always)]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put(value & 0x7f | 0x80, 1);
            value >>= 7;
        }
        self.put(value, 1);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: see the type; the only text is `TEXT`.
        unsafe {
            self.at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// A field with a length of one byte.
    #[inline(always)]
    fn nested(&mut self, tag: u64, content: impl FnOnce(&mut Self)) {
        self.put(tag, 2);
        let begin = self.at;
        content(self);
        // SAFETY: the byte before the content.
        unsafe { begin.sub(1).write((self.at.addr() - begin.addr()) as u8) };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::batch::{Plan, sample};

    #[test]
    fn chunks_are_filled_and_handed_over() {
        for case in MOCKS {
            let mut batch = Batch::of(2000);
            (case.run)(&mut batch);
        }
        WRITER.with(|writer| {
            let count = writer.packets.get();
            assert!(count > 0);
            // The sizes of the packets lead from one to the next, up to where the writer is.
            // SAFETY: the thread's own chunk.
            let chunk = unsafe { core::slice::from_raw_parts(writer.chunk.get(), CHUNK) };
            let mut at = HEADER;
            for _ in 0..count {
                assert_eq!(chunk[at + 1], 0x40);
                at += 1 + usize::from(chunk[at]);
            }
            assert_eq!(at, writer.at.get().addr() - writer.chunk.get().addr());
        });
        assert!(finished().is_empty());
    }

    #[test]
    fn threads_that_have_measured_leave_the_ring_to_others() {
        let plan = Plan { batches: 1, pause: Duration::ZERO };
        // More threads than the ring has chunks.
        for _ in 0..RING / CHUNK + 1 {
            assert_eq!(sample(&MOCKS[0], plan, 1).wall.len(), 1);
        }
    }
}
