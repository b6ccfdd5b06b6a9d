//! The trace clock.

use rustix::time::{ClockId, clock_gettime};

/// `BuiltinClock` of [`now_ns`] on this platform (`docs/spec/track-event.md` §11).
pub(crate) const TRACE_CLOCK_ID: u32 = 6;

/// Nanoseconds of `CLOCK_BOOTTIME`; no system call where the kernel offers a vDSO.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
