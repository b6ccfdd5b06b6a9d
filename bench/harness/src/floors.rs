//! Floors: loops that do the least possible work for an operation.

use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::batch::{Batch, Case};

const OPS: u64 = 20_000;

/// The parts that a trace point is made of.
pub const FLOORS: &[Case] = &[
    Case { name: "empty loop", ops: OPS, events: 0, run: empty },
    Case { name: "relaxed load and branch", ops: OPS, events: 0, run: load_and_branch },
    #[cfg(target_arch = "x86_64")]
    Case { name: "rdtsc", ops: OPS, events: 0, run: ticks_of_processor },
    Case { name: "clock_gettime(BOOTTIME)", ops: OPS, events: 0, run: boot_time },
];

static WORD: AtomicU32 = AtomicU32::new(0);

fn empty(batch: &mut Batch) {
    batch.time(|i| {
        black_box(i);
    });
}

fn load_and_branch(batch: &mut Batch) {
    batch.time(|i| {
        if WORD.load(Ordering::Relaxed) != 0 {
            rare(i);
        }
        black_box(i);
    });
}

#[cold]
#[inline(never)]
fn rare(i: u64) {
    black_box(i);
}

#[cfg(target_arch = "x86_64")]
fn ticks_of_processor(batch: &mut Batch) {
    batch.time(|_| {
        black_box(ticks());
    });
}

fn boot_time(batch: &mut Batch) {
    batch.time(|_| {
        black_box(boot_ns());
    });
}

/// The processor's time-stamp counter.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[inline(always)]
pub(crate) fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
