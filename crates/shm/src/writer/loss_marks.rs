//! Marks of losses at the ends of sequences (`docs/spec/shared-memory.md` §12).

use std::sync::Arc;

use super::trace_writer::TraceWriter;
use crate::arbiter::Arbiter;

impl Arbiter {
    /// Writes the marks that wait for a chunk. Those for which there is none wait on.
    pub(crate) fn write_marks(self: &Arc<Self>) {
        let mut waiting = self.marks();
        while waiting > 0 {
            let Some(mark) = self.take_mark() else { return };
            // Its drop writes the mark, or lets it wait again.
            drop(TraceWriter::of_mark(Arc::clone(self), mark));
            let left = self.marks();
            if left >= waiting {
                return;
            }
            waiting = left;
        }
    }
}
