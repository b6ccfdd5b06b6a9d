//! Stalls: waits of writers for a free chunk (§12).
//!
//! A writer that stalls tries again after pauses, which grow up to 100 ms. It gives up after 300
//! attempts, or when the [`StallBudget`] is used up.
//!
//! Without this budget, a dead or hostile service would stop each writer for 29 seconds, and again
//! after each chunk that it frees. So writers that stall share one budget. Each chunk that the
//! service frees adds to it. An ordinary service frees so many that the budget stays full. When the
//! budget is used up, writers drop at once.

use core::time::Duration;

use super::{Arbiter, Search};
use crate::{
    abi::ChunkHeader,
    chunk_states::{Chunk, state::BeingWritten},
};

/// Number of attempts of a stalling writer before it gives up: about 29 seconds (§12).
const STALL_ATTEMPTS: u32 = 300;
/// Longest wait between two attempts to get a chunk.
const MAX_STALL: Duration = Duration::from_millis(100);
/// The same bounds for a service in this process. It takes chunks only as fast as a disk does, so
/// threads wait often. One that sleeps for long finds that others have taken all free chunks, again
/// and again. The total is the same.
const STALL_ATTEMPTS_IN_PROCESS: u32 = STALL_ATTEMPTS * 25;
const MAX_STALL_IN_PROCESS: Duration = Duration::from_millis(4);
/// Full budget: a little more than one writer waits for one chunk.
pub(crate) const MAX_STALL_BUDGET: Duration = Duration::from_millis(30_000);
/// Time that each freed chunk adds: the longest wait between two attempts.
const STALL_BUDGET_PER_CHUNK: Duration = Duration::from_millis(100);
/// Smallest budget at the beginning of a connection.
const STALL_BUDGET_PER_CONNECTION: Duration = Duration::from_millis(1000);

impl Arbiter {
    #[cold]
    pub(super) fn stall(&self, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
        if self.options.serves_itself && self.notify.send_on_connection_thread() {
            return None;
        }
        self.state().stall_budget.begin();
        let found = self.wait_for_chunk(header);
        self.state().stall_budget.end();
        found
    }

    fn wait_for_chunk(&self, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
        let (attempts, longest) = match self.options.serves_itself {
            true => (STALL_ATTEMPTS_IN_PROCESS, MAX_STALL_IN_PROCESS),
            false => (STALL_ATTEMPTS, MAX_STALL),
        };
        let mut pause = Duration::ZERO;
        for attempt in 1..attempts {
            if attempt % 2 == 0 || !self.notify.send_on_connection_thread() {
                if !self.state().stall_budget.spend(pause) {
                    return None;
                }
                self.notify.stall(pause);
                pause = (pause * 8 + Duration::from_micros(8)).min(longest);
            }
            if self.is_shutdown() {
                return None;
            }
            let Search { found, scarce, .. } = self.search(header, u32::MAX);
            if scarce {
                self.notify.on_scarce(found.is_none());
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// How long the writers of an arbiter may still wait for a service that frees no chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallBudget {
    left: Duration,
    /// Number of writers that stall now. They wait at the same time, so they share the cost.
    stalled: u32,
    /// Number of chunks that no writer has used yet. The service did not free them, so they add
    /// nothing.
    fresh: u32,
}

impl StallBudget {
    /// Makes the budget of a connection with this many chunks from the rest that another connection
    /// left.
    pub(crate) fn new(left: Duration, chunks: u32) -> Self {
        Self { left: left.clamp(STALL_BUDGET_PER_CONNECTION, MAX_STALL_BUDGET), stalled: 0, fresh: chunks }
    }

    pub(crate) const fn left(&self) -> Duration {
        self.left
    }

    /// Notes that a writer got a chunk.
    #[inline]
    pub(crate) fn acquired(&mut self) {
        match self.fresh.checked_sub(1) {
            Some(fresh) => self.fresh = fresh,
            None => self.left = (self.left + STALL_BUDGET_PER_CHUNK).min(MAX_STALL_BUDGET),
        }
    }

    /// Notes that a writer begins to stall.
    pub(crate) const fn begin(&mut self) {
        self.stalled += 1;
    }

    /// Notes that a writer no longer stalls.
    pub(crate) const fn end(&mut self) {
        self.stalled -= 1;
    }

    /// Takes the cost of a pause. Returns `false` if the writer may not wait for so long.
    pub(crate) fn spend(&mut self, pause: Duration) -> bool {
        let left = self.left.checked_sub(pause / self.stalled.max(1));
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}
