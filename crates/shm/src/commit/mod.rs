//! Commits: the requests by which a producer hands finished chunks to the service, and the queue in
//! which they wait.

mod by_value;
mod outgoing;
mod patch_list;
mod queue;
mod request;
mod reservations;
mod splitter;

pub(crate) use by_value::copy_unfinished;
pub use outgoing::Outgoing;
pub(crate) use patch_list::PatchList;
pub(crate) use queue::{Batch, CommitQueue, Finished, FinishedChunk, Urgency};
pub use request::{ChunkToMove, ChunkToPatch, CommitRequest, FlushCallback, MAX_PATCHES_PER_ENTRY, Patch};
pub(crate) use reservations::{Reservations, Target};
pub(crate) use splitter::RequestSplitter;
