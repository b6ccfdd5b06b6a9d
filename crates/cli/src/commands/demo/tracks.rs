//! Counter tracks of the demo.

use esatto::{CounterTrack, Unit};

/// Paths or files that wait for the pipe to the next stage.
pub(super) static TO_SEND: CounterTrack = CounterTrack::new("waiting to be sent").unit(Unit::Count);
/// Files that wait for a crunching thread.
pub(super) static TO_CRUNCH: CounterTrack = CounterTrack::new("waiting to be crunched").unit(Unit::Count);
/// Files that wait for an indexing thread.
pub(super) static TO_INDEX: CounterTrack = CounterTrack::new("waiting to be indexed").unit(Unit::Count);
/// Content hashed and compressed so far.
pub(super) static BYTES_CRUNCHED: CounterTrack = CounterTrack::new("bytes crunched").unit(Unit::Bytes);
/// Distinct words in the index.
pub(super) static WORDS: CounterTrack = CounterTrack::new("distinct words").unit(Unit::Count);
/// Files in the index.
pub(super) static DOCUMENTS: CounterTrack = CounterTrack::new("documents").unit(Unit::Count);
