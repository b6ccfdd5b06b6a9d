//! Scarcity: the rules that say when too few chunks are free.
//!
//! Chunks are not free while a writer holds them, or while they are pending: finished, but not sent
//! to the service.
//!
//! - Writers hold many chunks: [`Notify::on_scarce`](super::Notify::on_scarce). The program takes
//!   chunks from threads that sleep.
//! - Half of the memory is pending: a writer on the thread of the connection sends it. No other
//!   thread would.
//! - One of [`Options::batch_parts`](super::Options::batch_parts) parts of the memory is pending: it
//!   is sent without the batching delay.

use super::{Arbiter, State};
use crate::memory::Region;

/// Writers may hold one of this many parts of all chunks before chunks count as scarce.
const HELD_PARTS: u32 = 2;
/// While chunks are scarce, [`Notify::on_scarce`](super::Notify::on_scarce) is called again each
/// time that writers take another such part of all chunks: one of this many.
const SCARCITY_PARTS: u32 = 16;
/// A writer on the thread of the connection sends what is pending when it fills one of this many
/// parts of the memory.
const PENDING_PARTS: usize = 2;

impl Arbiter {
    /// Returns true if the chunk that a writer has just got is one at which
    /// [`Notify::on_scarce`](super::Notify::on_scarce) is called.
    pub(super) fn is_scarce(&self, state: &State) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "a page has at most 14 chunks")]
        let chunks = self.smb.pages() * self.options.layout.chunks() as u32;
        let many = state.held > chunks / HELD_PARTS;
        many && state.held % (chunks / SCARCITY_PARTS).max(1) == 0
    }

    /// Returns true if so much is pending that a writer on the thread of the connection sends it.
    pub(super) fn half_pending(&self, state: &State) -> bool {
        state.pending.bytes >= self.smb.region().len() / PENDING_PARTS
    }

    /// Returns true if so much is pending that it is sent without the batching delay.
    pub(super) fn much_pending(&self, state: &State) -> bool {
        state.pending.bytes >= self.smb.region().len() / self.options.batch_parts
    }
}
