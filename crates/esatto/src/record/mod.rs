//! What the macros call for things that take time in pieces.

pub(crate) mod async_slice;
mod describe_track;
mod lanes;

pub use async_slice::{AsyncSlice, AsyncSlices, Driven};
pub use lanes::{Lane, Lanes};
