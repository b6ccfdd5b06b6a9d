//! [`Ticks`]: moments that are multiples of a period.

use core::time::Duration;

use crate::data_source::Monotonic;

/// The multiples of a period on CLOCK_MONOTONIC. So the polls of all data sources with the same
/// period come together, and the machine wakes up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    period: Duration,
    next: Monotonic,
}

impl Ticks {
    /// Makes ticks of which the first is due at once. `period` is not 0.
    pub(crate) fn starting(now: Monotonic, period: Duration) -> Self {
        Self { period, next: now }
    }

    /// Returns when the next tick is due.
    pub(crate) const fn deadline(&self) -> Monotonic {
        self.next
    }

    /// Returns true if a tick is due, and then goes on to the next one. Ticks that were missed are
    /// left out.
    pub(crate) fn take(&mut self, now: Monotonic) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = next_multiple(now, self.period);
        }
        is_due
    }
}

/// Returns the first multiple of `period` after `now`.
fn next_multiple(now: Monotonic, period: Duration) -> Monotonic {
    let (now, period) = (now.as_nanos(), period.as_nanos().max(1));
    let next = (now / period + 1) * period;
    Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tick_is_due_at_once_and_the_others_at_multiples() {
        let ms = Duration::from_millis;
        let mut ticks = Ticks::starting(ms(1234), ms(100));
        assert!(ticks.take(ms(1234)));
        assert_eq!(ticks.deadline(), ms(1300));
        assert!(!ticks.take(ms(1299)));
        assert!(ticks.take(ms(1555)), "late");
        assert_eq!(ticks.deadline(), ms(1600), "ticks that were missed are left out");
    }
}
