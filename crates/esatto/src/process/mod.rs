//! Tracing in this process as a whole: connecting, recording everything into a file, panics.

mod connect;
mod panics;
#[cfg(feature = "in-process")]
mod trace_to_file;

pub use connect::{Builder, Tracing};
pub use panics::trace_panics;
#[cfg(feature = "in-process")]
pub use trace_to_file::{FileTrace, trace_from_env, trace_to_file};
