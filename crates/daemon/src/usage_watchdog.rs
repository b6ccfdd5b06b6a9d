//! Watchdog that logs when the service takes too long, too much memory or too much processor time
//! (`docs/spec/service.md` §26).
//!
//! Upstream's watchdog kills the daemon. Here the watchdog of the service manager decides. The
//! checks run when the loop turns anyway: a sleeping service needs none, and is not woken.

use core::time::Duration;
use std::collections::VecDeque;
use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// A turn of the loop that takes longer has delayed all clients. (Upstream gives up after 180 s.)
const SLOW_TURN: Duration = Duration::from_secs(5);
/// Shortest time between two checks of memory and processor time.
const PERIOD: Duration = Duration::from_secs(30);
/// Memory that the service may take in addition to the buffers that sessions have asked for.
const MEMORY_MARGIN_BYTES: u64 = 64 << 20;
/// Period over which the processor time is averaged …
const CPU_WINDOW: Duration = Duration::from_secs(600);
/// … and the part of it that is too much, in percent of one processor.
const CPU_LIMIT_PERCENT: u128 = 90;

/// Measurements so far.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Times on the monotonic clock, each with the processor time used until then. The oldest is
    /// just outside the window.
    samples: VecDeque<(Duration, Duration)>,
    /// Each complaint is logged once until its cause ends.
    memory_exceeded: bool,
    cpu_exceeded: bool,
}

impl Watchdog {
    /// Notes that a turn of the loop took from `begin` to `end`.
    pub(crate) fn turned(&self, begin: Duration, end: Duration) {
        let took = end.saturating_sub(begin);
        if took > SLOW_TURN {
            log::warn!("one turn of the event loop took {:.1} s, in which no client was served", took.as_secs_f64());
        }
    }

    /// Returns whether a check is due.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.samples.back().is_none_or(|(last, _)| now.saturating_sub(*last) >= PERIOD)
    }

    /// Checks this process, whose buffers and queues should have this size.
    pub(crate) fn look(&mut self, now: Duration, wanted_bytes: u64) {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        // No part is ever negative.
        let cpu = Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
        if let Some(percent) = self.cpu_complaint(now, cpu) {
            log::warn!("the service has used {percent} % of a processor for {} minutes", CPU_WINDOW.as_secs() / 60);
        }
        let limit = wanted_bytes.saturating_add(MEMORY_MARGIN_BYTES);
        if let Some(bytes) = anonymous_bytes().and_then(|bytes| self.memory_complaint(bytes, limit)) {
            log::warn!("the service uses {} MiB of memory, but needs {} MiB at most", bytes >> 20, limit >> 20);
        }
    }

    fn cpu_complaint(&mut self, now: Duration, cpu: Duration) -> Option<u128> {
        self.samples.push_back((now, cpu));
        // If the second sample is outside the window, the first is no longer needed.
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= CPU_WINDOW) {
            self.samples.pop_front();
        }
        let (begin, cpu_then) = *self.samples.front()?;
        let elapsed = now.saturating_sub(begin);
        if elapsed < CPU_WINDOW {
            return None;
        }
        let percent = cpu.saturating_sub(cpu_then).as_nanos() * 100 / elapsed.as_nanos().max(1);
        let exceeds = percent > CPU_LIMIT_PERCENT;
        let is_new = exceeds && !self.cpu_exceeded;
        self.cpu_exceeded = exceeds;
        is_new.then_some(percent)
    }

    fn memory_complaint(&mut self, bytes: u64, limit: u64) -> Option<u64> {
        let exceeds = bytes > limit;
        let is_new = exceeds && !self.memory_exceeded;
        self.memory_exceeded = exceeds;
        is_new.then_some(bytes)
    }
}

/// Returns the memory of this process that belongs to no file and no shared memory.
fn anonymous_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (pages.next()??, pages.next()??);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_busy_processor_is_logged_once_after_ten_minutes() {
        let mut watchdog = Watchdog::default();
        // Nine minutes at 100 %, the tenth at none; then at 100 % for longer.
        let told: Vec<_> = (0..=540).step_by(30).filter_map(|at| watchdog.cpu_complaint(s(at), s(at))).collect();
        assert_eq!(told, []);
        assert_eq!(watchdog.cpu_complaint(s(600), s(540)), None);
        let told: Vec<_> =
            (630..=1500).step_by(30).filter_map(|at| watchdog.cpu_complaint(s(at), s(at - 60))).collect();
        assert_eq!(told, [100]);
        assert!(watchdog.samples.len() <= 22, "{}", watchdog.samples.len());
        // After a long sleep, the average starts again.
        assert_eq!(watchdog.cpu_complaint(s(9000), s(1450)), None);
        assert!(!watchdog.cpu_exceeded);
    }

    #[test]
    fn excess_memory_is_logged_once() {
        let mut watchdog = Watchdog::default();
        let told: Vec<_> =
            [10, 20, 30, 15, 30].iter().filter_map(|&bytes| watchdog.memory_complaint(bytes, 19)).collect();
        assert_eq!(told, [20, 30]);
    }

    #[test]
    fn this_process_has_some_memory() {
        assert!(anonymous_bytes().is_some_and(|bytes| bytes > 0));
        let watchdog = Watchdog::default();
        assert!(watchdog.is_due(s(0)));
    }
}
