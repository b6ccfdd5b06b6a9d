//! How long the writers of an arbiter still wait for a service that hands back no chunk (§12).
//!
//! Without this, a service that is dead or hostile would hold up each writer for 29 seconds, and
//! again after each chunk that it hands back. So writers that stall share one budget. Each chunk
//! that the service hands back adds to it, and an ordinary service hands back so many that the
//! budget stays full. Without budget, writers drop at once.

use core::time::Duration;

/// The whole budget: a bit more than one writer waits for one chunk.
pub(crate) const MAX_STALL_BUDGET: Duration = Duration::from_millis(30_000);
/// What each chunk adds: the longest wait between two attempts.
const STALL_BUDGET_PER_CHUNK: Duration = Duration::from_millis(100);
/// What there is at least when a connection begins.
const STALL_BUDGET_PER_CONNECTION: Duration = Duration::from_millis(1000);

#[derive(Clone, Copy, Debug)]
pub(crate) struct StallBudget {
    left: Duration,
    /// Writers that stall now. They wait at the same time, so they share what it costs.
    stalled: u32,
    /// Chunks that nobody has had yet: they do not come from the service.
    fresh: u32,
}

impl StallBudget {
    /// For a connection with so many chunks, of what another connection left.
    pub(crate) fn new(left: Duration, chunks: u32) -> Self {
        Self { left: left.clamp(STALL_BUDGET_PER_CONNECTION, MAX_STALL_BUDGET), stalled: 0, fresh: chunks }
    }

    pub(crate) const fn left(&self) -> Duration {
        self.left
    }

    /// A writer got a chunk.
    #[inline]
    pub(crate) fn acquired(&mut self) {
        match self.fresh.checked_sub(1) {
            Some(fresh) => self.fresh = fresh,
            None => self.left = (self.left + STALL_BUDGET_PER_CHUNK).min(MAX_STALL_BUDGET),
        }
    }

    /// A writer begins to stall.
    pub(crate) const fn begin(&mut self) {
        self.stalled += 1;
    }

    /// A writer stalls no longer.
    pub(crate) const fn end(&mut self) {
        self.stalled -= 1;
    }

    /// A writer wants to wait for so long. `false`: it may not.
    pub(crate) fn spend(&mut self, pause: Duration) -> bool {
        let left = self.left.checked_sub(pause / self.stalled.max(1));
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}
