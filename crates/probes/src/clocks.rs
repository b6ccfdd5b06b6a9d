//! Clocks of the kernel.

use rustix::time::ClockId;

/// Reads CLOCK_BOOTTIME, which is the clock of the trace.
pub(crate) fn boottime_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}
