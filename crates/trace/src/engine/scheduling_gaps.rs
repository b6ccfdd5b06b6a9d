//! Times in which no thread was switched on a whole machine, although one seems to run.
//!
//! The kernel itself runs threads on each machine many times in a second. So nothing was recorded
//! then: the trace is several recordings in one, or the machine slept.

use hashbrown::HashMap;

/// The shortest time that counts, in nanoseconds.
const SHORTEST: i64 = 2_000_000_000;

/// Search for such times, which is given all switches in the order of time.
#[derive(Debug, Default)]
pub(crate) struct SchedulingGaps {
    /// The machine of the switch before, and its time.
    latest: Option<(u32, i64)>,
    /// Times of the latest switches of machines that are not in `latest`.
    others: HashMap<u32, i64>,
    /// The latest of these times, and its machine.
    candidate: Option<(u32, (i64, i64))>,
    longest: Option<(i64, i64)>,
}

impl SchedulingGaps {
    /// Takes the time of a switch. Returns whether there was a time without switches before it or
    /// before an earlier one, so that [`add_run`](Self::add_run) wants to know what ran in it.
    pub(super) fn add_switch(&mut self, machine: u32, ts: i64) -> bool {
        let before = match self.latest {
            Some((latest, before)) if latest == machine => Some(before),
            Some((latest, before)) => {
                self.others.insert(latest, before);
                self.others.get(&machine).copied()
            }
            None => None,
        };
        if let Some(before) = before.filter(|before| ts.saturating_sub(*before) >= SHORTEST) {
            self.candidate = Some((machine, (before, ts)));
        }
        self.latest = Some((machine, ts));
        self.candidate.is_some()
    }

    /// Takes an interval in which a processor ran a thread, other than the idle one.
    pub(super) fn add_run(&mut self, machine: u32, (from, to): (i64, i64)) {
        let Some((of, gap)) = self.candidate else { return };
        let longest = self.longest.map_or(0, |(from, to)| to.saturating_sub(from));
        if of == machine && from <= gap.0 && to >= gap.1 && gap.1.saturating_sub(gap.0) > longest {
            self.longest = Some(gap);
        }
    }

    /// Returns begin and end of the longest one.
    pub(crate) fn longest(&self) -> Option<(i64, i64)> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_longest_time_in_which_a_thread_seems_to_run_is_found() {
        let mut gaps = SchedulingGaps::default();
        for (machine, ts) in [(0, 0), (1, 0), (0, S), (1, S), (0, 5 * S)] {
            gaps.add_switch(machine, ts);
        }
        assert_eq!(gaps.longest(), None, "the processors were idle");
        gaps.add_run(1, (0, 6 * S));
        assert_eq!(gaps.longest(), None, "another machine");
        gaps.add_run(0, (2 * S, 5 * S));
        assert_eq!(gaps.longest(), None, "it began within");
        // The second processor of the machine has its next switch later.
        gaps.add_switch(0, 5 * S + 1);
        gaps.add_run(0, (S / 2, 5 * S + 1));
        assert_eq!(gaps.longest(), Some((S, 5 * S)));
        gaps.add_switch(0, 8 * S);
        gaps.add_run(0, (5 * S, 8 * S));
        assert_eq!(gaps.longest(), Some((S, 5 * S)), "a shorter one");
        gaps.add_switch(1, 40 * S);
        gaps.add_run(1, (S, 40 * S));
        assert_eq!(gaps.longest(), Some((S, 40 * S)));
    }
}
