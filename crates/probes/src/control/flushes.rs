//! [`Flushes`]: flush requests that wait for workers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A flush is acknowledged after this time, even if a data source is not done
/// (`docs/spec/probes.md` §1).
const PATIENCE: Duration = Duration::from_millis(1000);

/// Flush requests in their order. An acknowledgement also answers all earlier requests, so each
/// waits for those before it.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    waiting: VecDeque<Flush>,
    /// Number of the last request, which is not repeated by another connection.
    last: u64,
}

#[derive(Debug)]
struct Flush {
    number: u64,
    /// Number that the service gave to it.
    request: u64,
    /// Workers that have not answered.
    workers: usize,
    due: Instant,
}

impl Flushes {
    /// Notes a request for which `workers` are asked. Returns its number for them.
    pub(super) fn begin(&mut self, request: u64, workers: usize, now: Instant) -> u64 {
        self.last += 1;
        self.waiting.push_back(Flush { number: self.last, request, workers, due: now + PATIENCE });
        self.last
    }

    /// Notes the answer of a worker.
    pub(super) fn answered(&mut self, number: u64) {
        if let Some(flush) = self.waiting.iter_mut().find(|flush| flush.number == number) {
            flush.workers = flush.workers.saturating_sub(1);
        }
    }

    /// Returns the request to acknowledge, if there is one, and whether workers are late with it.
    pub(super) fn take_done(&mut self, now: Instant) -> Option<(u64, bool)> {
        let mut done = None;
        while let Some(flush) = self.waiting.front() {
            let is_late = flush.workers > 0;
            if is_late && flush.due > now {
                break;
            }
            let was_late = done.is_some_and(|(_, late)| late);
            done = Some((flush.request, is_late || was_late));
            self.waiting.pop_front();
        }
        done
    }

    /// Returns when the next request is acknowledged in any case.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|flush| flush.due)
    }

    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_acknowledged_when_all_workers_are_done_or_after_a_second() {
        let now = Instant::now();
        let mut flushes = Flushes::default();
        let first = flushes.begin(70, 2, now);
        let second = flushes.begin(71, 1, now + Duration::from_millis(500));
        flushes.answered(second);
        flushes.answered(first);
        assert_eq!(flushes.take_done(now), None);
        flushes.answered(first);
        assert_eq!(flushes.take_done(now), Some((71, false)));
        flushes.begin(72, 1, now);
        assert_eq!(flushes.deadline(), Some(now + PATIENCE));
        assert_eq!(flushes.take_done(now + PATIENCE), Some((72, true)));
        assert_eq!(flushes.deadline(), None);
    }

    #[test]
    fn a_flush_of_no_instance_is_acknowledged_at_once() {
        let mut flushes = Flushes::default();
        flushes.begin(5, 0, Instant::now());
        assert_eq!(flushes.take_done(Instant::now()), Some((5, false)));
    }

    #[test]
    fn answers_to_requests_of_an_earlier_connection_do_not_count() {
        let now = Instant::now();
        let mut flushes = Flushes::default();
        let old = flushes.begin(1, 1, now);
        flushes.clear();
        flushes.begin(1, 1, now);
        flushes.answered(old);
        assert_eq!(flushes.take_done(now), None);
    }
}
