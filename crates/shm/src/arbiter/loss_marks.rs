//! [`LossMarks`]: losses at the ends of sequences, which no later packet can tell
//! (`docs/spec/shared-memory.md` §12).
//!
//! A writer tells a loss in its next packet. If it is dropped before, because no chunk has become
//! free, the arbiter keeps the loss, and the number of the writer, until there is a chunk.

use std::collections::VecDeque;

use super::{Arbiter, Urgency, WriterRef};

/// Marks that an arbiter keeps. Beyond that the oldest is given up.
const MAX_LOSS_MARKS: usize = 1024;

/// The loss that a dropped writer still had to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossMark {
    pub(crate) writer: WriterRef,
    /// Number of the writer's next chunk.
    pub(crate) chunk_id: u32,
    /// The sequence has no packet yet.
    pub(crate) first_packet: bool,
    /// Value for `previous_packet_dropped`.
    pub(crate) loss: u16,
}

/// Marks without a chunk, the oldest first.
#[derive(Debug, Default)]
pub(super) struct LossMarks(VecDeque<LossMark>);

impl Arbiter {
    /// Removes a writer after its loss has been marked.
    pub(crate) fn retire_marked_writer(&self, mark: LossMark) {
        if self.is_shutdown() {
            return;
        }
        let mut state = self.state();
        state.marks.0.push_back(mark);
        if state.marks.0.len() > MAX_LOSS_MARKS {
            if let Some(oldest) = state.marks.0.pop_front() {
                state.retire(oldest.writer);
                self.announce(state, Urgency::Now);
            }
        }
    }

    /// Takes a mark that waits for a chunk.
    pub(crate) fn take_mark(&self) -> Option<LossMark> {
        self.state().marks.0.pop_front()
    }

    /// Returns the number of marks that wait for a chunk.
    pub(crate) fn marks(&self) -> usize {
        self.state().marks.0.len()
    }
}
