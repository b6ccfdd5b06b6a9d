//! Clock snapshots of a session: when it takes them, and which ones it keeps until the next read
//! (`docs/spec/service.md §16`).

use super::unread_events::UnreadEvents;
use super::{Session, or_default};
use crate::api::Now;

const DEFAULT_SNAPSHOT_INTERVAL_MS: u32 = 10_000;

/// Clock snapshots that a session keeps between two reads.
const MAX_SNAPSHOTS: usize = 16;

/// Drift of a clock from BOOTTIME since the last snapshot, from which on the session keeps a new
/// one.
const SNAPSHOT_DRIFT_NS: u64 = 10_000_000;

impl Session {
    pub(crate) fn snapshot_interval_ms(&self) -> u32 {
        let builtin = self.config.builtin_data_sources.as_ref();
        or_default(builtin.and_then(|b| b.snapshot_interval_ms), DEFAULT_SNAPSHOT_INTERVAL_MS)
    }

    pub(crate) fn takes_snapshots(&self) -> bool {
        !self.builtin(|builtin| builtin.disable_clock_snapshotting)
    }

    /// Keeps a snapshot of the clocks if one of them has drifted.
    pub(crate) fn snapshot(&mut self, now: &Now) {
        if self.takes_snapshots() {
            self.unread.add_snapshot(now);
        }
    }
}

impl UnreadEvents {
    fn add_snapshot(&mut self, now: &Now) {
        if self.snapshots.back().is_some_and(|last| !has_drifted(last, now)) {
            return;
        }
        if self.snapshots.len() == MAX_SNAPSHOTS {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back(*now);
    }
}

/// Tells whether some clock advanced differently from BOOTTIME.
fn has_drifted(last: &Now, now: &Now) -> bool {
    let boot = now.boottime_ns.wrapping_sub(last.boottime_ns) as i64;
    let clocks = |at: &Now| {
        let tsc = at.tsc.unwrap_or(at.boottime_ns);
        [at.realtime_ns, at.realtime_coarse_ns, at.monotonic_ns, at.monotonic_coarse_ns, at.monotonic_raw_ns, tsc]
    };
    clocks(last)
        .iter()
        .zip(clocks(now))
        .any(|(&last, now)| (now.wrapping_sub(last) as i64).abs_diff(boot) >= SNAPSHOT_DRIFT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_kept_when_a_clock_drifts() {
        let mut unread = UnreadEvents::default();
        let first = Now { boottime_ns: 1_000_000_000, realtime_ns: 5_000_000_000, ..Now::default() };
        unread.add_snapshot(&first);
        let mut later = first;
        for ns in [
            &mut later.boottime_ns,
            &mut later.realtime_ns,
            &mut later.realtime_coarse_ns,
            &mut later.monotonic_ns,
            &mut later.monotonic_coarse_ns,
            &mut later.monotonic_raw_ns,
        ] {
            *ns += 3_000_000_000;
        }
        later.realtime_ns += 9_999_999;
        unread.add_snapshot(&later);
        assert_eq!(unread.snapshots.len(), 1);
        later.realtime_ns += 1;
        unread.add_snapshot(&later);
        assert_eq!(unread.snapshots.len(), 2);
        for i in 0..100 {
            unread.add_snapshot(&Now { boottime_ns: i * 1_000_000_000, ..Now::default() });
        }
        assert_eq!(unread.snapshots.len(), MAX_SNAPSHOTS);
    }
}
