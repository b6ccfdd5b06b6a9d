//! Tracing in this process as a whole: connecting, recording all of it into a file, the end, forks and panics.

mod connect;
pub(crate) mod fork;
mod panics;
pub(crate) mod shutdown;
#[cfg(feature = "in-process")]
mod trace_to_file;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use connect::producer_socket;
pub use connect::{Builder, Tracing};
pub use panics::trace_panics;
pub use shutdown::shutdown;
#[cfg(feature = "in-process")]
pub use trace_to_file::{FileTrace, trace_from_env, trace_to_file};
