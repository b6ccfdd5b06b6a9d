//! Functions that trace points call: the way of events, and slices.

pub(crate) mod async_slice;
mod describe_track;
mod guard_stack;
mod lanes;
mod open_slice;
mod slice;
mod thread_slice;
mod threads;
pub(crate) mod trace_point;
pub(crate) mod traced_result;

pub use async_slice::{AsyncSlice, AsyncSlices, Driven};
pub use guard_stack::{close_enabled, close_enabled_as, close_plain, open_enabled, open_enabled_as, open_plain};
pub(crate) use guard_stack::{ignore_end, wrong_ends};
pub use lanes::{Lane, Lanes};
pub use open_slice::Begun;
pub use slice::{SliceGuard, TrackSliceGuard, begin_enabled, begin_enabled_as, begin_plain};
pub use thread_slice::ThreadSlice;
pub use threads::empty_event;
pub(crate) use threads::{Threads, flush, flush_all, reclaim};
pub use trace_point::{record, record_enabled, record_enabled_as, record_only, record_plain};
