//! A service in this process, on the control thread.

mod service;
mod trace_files;

pub(super) use service::{InProcess, LocalLink, Port, start};
