//! A service in this process, on the control thread.

mod mpsc_queue;
mod service;
mod trace_files;

pub(super) use service::{InProcess, LocalLink, Port, start};
