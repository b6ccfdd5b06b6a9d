//! [`RecentEntries`]: entries that were written into the trace, to find copies of them.

use std::collections::VecDeque;

use super::file_format::EntryHeader;

/// Entries that are remembered: 64 KiB.
const MAX_RECENT_ENTRIES: usize = 4096;

/// The last entries that were written into the trace.
///
/// When the disk can be written, journald copies all entries of `/run/log/journal` into a file in
/// `/var/log/journal`. The copies have other sequence numbers, but the same time and content.
#[derive(Debug, Default)]
pub(super) struct RecentEntries {
    /// Time in microseconds and hash of the content.
    entries: VecDeque<(u64, u64)>,
    newest_us: u64,
}

impl RecentEntries {
    pub(super) fn add(&mut self, entry: &EntryHeader) {
        if self.entries.len() >= MAX_RECENT_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back((entry.monotonic_us, entry.xor_hash));
        self.newest_us = self.newest_us.max(entry.monotonic_us);
    }

    pub(super) fn contains(&self, entry: &EntryHeader) -> bool {
        entry.monotonic_us <= self.newest_us && self.entries.contains(&(entry.monotonic_us, entry.xor_hash))
    }
}
