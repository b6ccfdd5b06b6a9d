//! Clocks of the machine, read for the service.

use esatto_service::Now;
use rustix::time::{ClockId, clock_gettime};

/// Reads all clocks, one directly after the other. The clock of timestamps comes first
/// (`docs/spec/service.md` §16).
pub(crate) fn now() -> Now {
    let boottime_ns = ns(ClockId::Boottime);
    let realtime_coarse_ns = ns(ClockId::RealtimeCoarse);
    let monotonic_coarse_ns = ns(ClockId::MonotonicCoarse);
    let realtime_ns = ns(ClockId::Realtime);
    let monotonic_ns = ns(ClockId::Monotonic);
    let monotonic_raw_ns = ns(ClockId::MonotonicRaw);
    let tsc = esatto_ipc::sys::cycles();
    Now { boottime_ns, realtime_coarse_ns, monotonic_coarse_ns, realtime_ns, monotonic_ns, monotonic_raw_ns, tsc }
}

/// Reads the clock that timers use.
pub(crate) fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // A realtime clock before 1970 counts as 1970.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
