//! The name of the thread that writes a sequence, and how the sequence follows a new name.

use super::Sequence;

/// The shortest time between two looks at the thread's name.
const INTERVAL_NS: u64 = 100_000_000;

/// Returns true if the last look at the thread's name is too long ago.
#[inline]
pub(super) const fn is_look_due(last_look: u64, now: u64) -> bool {
    now.saturating_sub(last_look) >= INTERVAL_NS
}

impl Sequence {
    /// Looks at the thread's name if it is time, and describes the thread again if it was renamed.
    /// Returns false if it was not time.
    ///
    /// The sequence calls this for each event of the full path, and for an event of the fast path
    /// that fills a chunk or comes some time after the event before it.
    #[inline]
    pub(super) fn look_at_name(&mut self, now: u64) -> bool {
        let is_due = is_look_due(self.named_ns, now);
        if is_due {
            self.follow_name(now);
        }
        is_due
    }

    #[cold]
    #[inline(never)]
    fn follow_name(&mut self, now: u64) {
        self.named_ns = now;
        if let Some(thread) = self.thread.renamed() {
            self.thread = thread;
            self.describe_thread(now);
        }
    }
}
