//! Flush requests of a service that wait for data sources.

use core::mem;

use esatto_map::Map;

/// The most flush requests that wait for data sources at a time. With more, the oldest no longer
/// waits.
const MAX_PENDING_FLUSHES: usize = 64;

/// Requests that are not acknowledged yet.
pub(super) struct PendingFlushes {
    /// Data sources that have not answered yet, by flush request.
    waiting: Map<u64, usize>,
    /// Requests have arrived since the last acknowledgement. They are acknowledged together, so
    /// that a flood of them costs as much as one.
    has_new: bool,
}

impl PendingFlushes {
    pub(super) const fn new() -> Self {
        Self { waiting: Map::new(), has_new: false }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.has_new = false;
    }

    /// Adds a request that waits for this many data sources.
    pub(super) fn add(&mut self, request: u64, sources: usize) {
        if self.waiting.len() >= MAX_PENDING_FLUSHES {
            let oldest = self.waiting.keys().next().copied();
            self.waiting.retain(|&request, _| Some(request) != oldest);
        }
        self.waiting.insert(request, sources);
        self.has_new = true;
    }

    /// Returns whether requests have arrived since the last call.
    pub(super) const fn take_new(&mut self) -> bool {
        mem::replace(&mut self.has_new, false)
    }

    /// Notes the answer of a data source. Returns whether the request is known.
    pub(super) fn answered(&mut self, request: u64) -> bool {
        let Some(waiting) = self.waiting.get_mut(&request) else { return false };
        *waiting = waiting.saturating_sub(1);
        true
    }

    /// Removes the oldest requests, up to the first that waits for a data source. Returns the
    /// newest of them.
    pub(super) fn take_complete(&mut self) -> Option<u64> {
        let complete =
            self.waiting.iter().take_while(|&(_, &waiting)| waiting == 0).map(|(&request, _)| request).last();
        if let Some(request) = complete {
            self.waiting.retain(|&other, _| other > request);
        }
        complete
    }
}
