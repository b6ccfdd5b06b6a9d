//! What nothing can be faster than.

use core::cell::RefCell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::batch::Case;

const OPS: u64 = 20_000;

/// The parts that a trace point is made of.
pub const FLOORS: &[Case] = &[
    Case { name: "empty loop", ops: OPS, events: 0, run: empty },
    Case { name: "relaxed load and branch", ops: OPS, events: 0, run: load_and_branch },
    #[cfg(target_arch = "x86_64")]
    Case { name: "rdtsc", ops: OPS, events: 0, run: rdtsc },
    Case { name: "clock_gettime(BOOTTIME)", ops: OPS, events: 0, run: boot_time },
];

/// A pair of events without protobuf, threads or a service.
pub const MOCK: Case = Case { name: "mock writer, pair", ops: 400, events: 0, run: mock_pair };

static WORD: AtomicU32 = AtomicU32::new(0);

fn empty(n: u64) {
    for i in 0..n {
        black_box(i);
    }
}

fn load_and_branch(n: u64) {
    for i in 0..n {
        if WORD.load(Ordering::Relaxed) != 0 {
            rare(i);
        }
        black_box(i);
    }
}

#[cold]
#[inline(never)]
fn rare(i: u64) {
    black_box(i);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn rdtsc(n: u64) {
    for _ in 0..n {
        // SAFETY: every x86-64 processor has the instruction; it touches no memory.
        black_box(unsafe { core::arch::x86_64::_rdtsc() });
    }
}

fn boot_time(n: u64) {
    for _ in 0..n {
        black_box(boot_ns());
    }
}

fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// One clock read per event, the difference to the last as a varint, 15 more bytes into a thread's chunk of 4 KiB, and a release store of
/// the number of packets.
fn mock_pair(n: u64) {
    for _ in 0..n {
        mock_event(black_box(&[1; 15]));
        mock_event(black_box(&[2; 15]));
    }
}

struct Mock {
    chunk: [u8; 4096],
    at: usize,
    last_ns: u64,
}

static PACKETS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static CHUNK: RefCell<Mock> = const { RefCell::new(Mock { chunk: [0; 4096], at: 0, last_ns: 0 }) };
}

#[inline(never)]
fn mock_event(body: &[u8; 15]) {
    CHUNK.with_borrow_mut(|mock| {
        let now = boot_ns();
        let mut delta = now - mock.last_ns;
        mock.last_ns = now;
        if mock.at + 32 > mock.chunk.len() {
            black_box(&mock.chunk);
            mock.at = 0;
        }
        while delta >= 0x80 {
            mock.chunk[mock.at] = delta as u8 | 0x80;
            mock.at += 1;
            delta >>= 7;
        }
        mock.chunk[mock.at] = delta as u8;
        mock.chunk[mock.at + 1..][..15].copy_from_slice(body);
        mock.at += 16;
        PACKETS.store(mock.at as u32, Ordering::Release);
    });
}
