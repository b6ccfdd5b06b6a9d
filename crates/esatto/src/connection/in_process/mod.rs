//! A service in this process, on the control thread.

mod service;
mod trace_files;

pub(crate) use service::set_machine_id;
pub(super) use service::start;
