//! Notices that the service takes too long, too much memory or too much time of the processor, and says so
//! (`docs/spec/service.md` §26). Upstream's watchdog kills the daemon; here that is left to the service manager, which has one of
//! its own.
//!
//! It looks when the loop turns anyway: a service that sleeps needs no watching, and is not woken up for it.

use core::time::Duration;
use std::collections::VecDeque;
use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// A turn of the loop that takes longer held everybody up. (Upstream gives up after 180 s.)
const SLOW_TURN: Duration = Duration::from_secs(5);
/// How often memory and time are looked at, at most.
const PERIOD: Duration = Duration::from_secs(30);
/// What the service may take beside the buffers that sessions have asked for.
const MEMORY_MARGIN_BYTES: u64 = 64 << 20;
/// The processor's time is averaged over this…
const CPU_WINDOW: Duration = Duration::from_secs(600);
/// …and this part of it is too much, in percent of one processor.
const CPU_LIMIT_PERCENT: u128 = 90;

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Times on the monotonic clock, and the time of the processor up to then; the oldest is just outside of the window.
    samples: VecDeque<(Duration, Duration)>,
    /// What was said last: each is said once until it is over.
    memory_exceeded: bool,
    cpu_exceeded: bool,
}

impl Watchdog {
    /// A turn of the loop took from `begin` to `end`.
    pub(crate) fn turned(&self, begin: Duration, end: Duration) {
        let took = end.saturating_sub(begin);
        if took > SLOW_TURN {
            log::warn!(
                "everybody has waited for {:.1} s: one turn of the event loop took that long",
                took.as_secs_f64()
            );
        }
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.samples.back().is_none_or(|(last, _)| now.saturating_sub(*last) >= PERIOD)
    }

    /// Looks at this process, whose buffers and queues are meant to be of this size.
    pub(crate) fn look(&mut self, now: Duration, wanted_bytes: u64) {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        // Neither part is ever negative.
        let cpu = Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
        if let Some(percent) = self.cpu_complaint(now, cpu) {
            log::warn!("{percent} % of a processor over the last {} minutes", CPU_WINDOW.as_secs() / 60);
        }
        let limit = wanted_bytes.saturating_add(MEMORY_MARGIN_BYTES);
        if let Some(bytes) = anonymous_bytes().and_then(|bytes| self.memory_complaint(bytes, limit)) {
            log::warn!("{} MiB of memory, where {} MiB are the most to be expected", bytes >> 20, limit >> 20);
        }
    }

    fn cpu_complaint(&mut self, now: Duration, cpu: Duration) -> Option<u128> {
        self.samples.push_back((now, cpu));
        // The second one being outside, the first is not needed any more.
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

/// Memory of this process that no file and no shared memory is behind.
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
    fn a_busy_processor_is_told_of_once_and_only_when_it_lasts() {
        let mut watchdog = Watchdog::default();
        // Nine minutes at 100 %, the tenth at none; then at 100 % for longer.
        let told: Vec<_> = (0..=540).step_by(30).filter_map(|at| watchdog.cpu_complaint(s(at), s(at))).collect();
        assert_eq!(told, []);
        assert_eq!(watchdog.cpu_complaint(s(600), s(540)), None);
        let told: Vec<_> =
            (630..=1500).step_by(30).filter_map(|at| watchdog.cpu_complaint(s(at), s(at - 60))).collect();
        assert_eq!(told, [100]);
        assert!(watchdog.samples.len() <= 22, "{}", watchdog.samples.len());
        // After a long sleep it begins anew.
        assert_eq!(watchdog.cpu_complaint(s(9000), s(1450)), None);
        assert!(!watchdog.cpu_exceeded);
    }

    #[test]
    fn memory_beyond_what_was_asked_for_is_told_of_once() {
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
