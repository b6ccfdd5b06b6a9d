//! Counts of a session, from the stats of the service.

use esatto_trace::{Loss, Reading, TraceStats};

use super::Transfer;

/// Counts of the service for the session (`docs/spec/service.md` §17).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) written_bytes: u64,
    pub(super) losses: u64,
    /// Gaps where a program dropped packets, because it found its shared memory full.
    pub(super) gaps: u64,
    /// Chunks of ring buffers that newer ones replaced, as intended.
    pub(super) overwritten: u64,
    /// Triggers that did not act because of `max_per_24_h`.
    pub(super) limited_triggers: u64,
    /// Triggers whose delay is not over.
    pub(super) delayed_triggers: u64,
}

impl Stats {
    /// Adds up the counts. An overwritten buffer is no loss if it is read only at the end.
    pub(super) fn of(stats: &TraceStats, first: &TraceStats, config: &[u8], transfer: Transfer) -> Self {
        let is_at_end = matches!(transfer, Transfer::AtEnd | Transfer::Snapshots);
        let reading = if is_at_end { Reading::AtEnd } else { Reading::Continuous };
        let losses = stats.losses_since(first, config, reading);
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let number = |is_counted: &dyn Fn(&Loss) -> bool| {
            sum(&mut losses.iter().filter(|loss| is_counted(loss)).map(|loss| loss.number))
        };
        Self {
            written_bytes: sum(&mut stats.buffers.iter().filter_map(|buffer| buffer.get("bytes_written")).copied()),
            losses: number(&|loss| !loss.expected && !loss.is_of_shared_memory()),
            gaps: number(&Loss::is_of_shared_memory),
            overwritten: number(&|loss| loss.expected),
            limited_triggers: stats.triggers_limited,
            delayed_triggers: stats.triggers_delayed,
        }
    }
}
