//! Tracing in this process as a whole: connecting, recording everything into a file, panics.

mod connect;
#[cfg(feature = "in-process")]
mod empty_file;
mod ending_signals;
#[cfg(feature = "in-process")]
mod file_losses;
#[cfg(not(feature = "in-process"))]
mod missing_feature;
#[cfg(feature = "in-process")]
mod own_file;
mod panics;
#[cfg(feature = "in-process")]
mod recordings;
#[cfg(feature = "in-process")]
mod trace_to_file;
mod unread_variable;

pub use connect::{Builder, Tracing};
pub use ending_signals::complete_on_signals;
#[cfg(not(feature = "in-process"))]
pub use missing_feature::InProcessFeature;
pub use panics::trace_panics;
#[cfg(feature = "in-process")]
pub use trace_to_file::{FileTrace, trace_from_env, trace_to_file};
