//! The name of the thread that writes a sequence, and how the sequence follows a new name.

use super::Sequence;

/// The shortest time between two looks at the thread's name. The sequence looks when an event takes
/// the full path.
pub(super) const NAME_INTERVAL_NS: u64 = 100_000_000;

impl Sequence {
    /// Describes the thread again if it was renamed.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_name(&mut self, now: u64) {
        self.named_ns = now;
        if let Some(thread) = self.thread.renamed() {
            self.thread = thread;
            self.describe_thread(now);
        }
    }
}
