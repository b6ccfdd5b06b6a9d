//! Splitting of emulated commits into requests of bounded size.

use super::request::{ChunkToMove, ChunkToPatch, CommitRequest, FlushCallback};
use crate::abi::PATCH_SIZE;

/// Largest estimated size of an emulated request. A request that would reach it is split (§17).
const EMULATED_REQUEST_LIMIT: usize = 131072 - 512;
/// Bytes that a chunk adds to the estimate beside its data, and a patch entry beside its patches.
const ENTRY_OVERHEAD: usize = 32;
/// Bytes that a patch adds to the estimate.
const PATCH_OVERHEAD: usize = PATCH_SIZE + 16;

/// Puts entries into one request, or for emulation into as many as are necessary.
pub(crate) struct RequestSplitter {
    done: Vec<CommitRequest>,
    current: CommitRequest,
    estimate: usize,
    limit: usize,
}

impl RequestSplitter {
    pub(crate) fn new(emulation: bool) -> Self {
        let limit = if emulation { EMULATED_REQUEST_LIMIT } else { usize::MAX };
        Self { done: Vec::new(), current: CommitRequest::default(), estimate: 0, limit }
    }

    pub(crate) fn push_move(&mut self, entry: ChunkToMove) {
        self.make_room(ENTRY_OVERHEAD + entry.data.as_ref().map_or(0, Vec::len));
        self.current.moves.push(entry);
    }

    pub(crate) fn push_patch(&mut self, entry: ChunkToPatch) {
        self.make_room(ENTRY_OVERHEAD + entry.patches.len() * PATCH_OVERHEAD);
        self.current.patches.push(entry);
    }

    /// Returns the requests. The last one has the flush id and the callbacks.
    pub(crate) fn finish(mut self, flush_request_id: u64, callbacks: Vec<FlushCallback>) -> Vec<CommitRequest> {
        self.current.flush_request_id = flush_request_id;
        self.current.callbacks = callbacks;
        self.done.push(self.current);
        self.done
    }

    fn make_room(&mut self, size: usize) {
        if self.estimate != 0 && self.estimate + size >= self.limit {
            self.done.push(std::mem::take(&mut self.current));
            self.estimate = 0;
        }
        self.estimate += size;
    }
}
