//! Threads that write the trace files of a tracing service (`write_into_file`,
//! `docs/spec/service.md` §18).
//!
//! A file can be slow (a network disk) or never finish a write at all (an unread pipe). The thread
//! that runs the service must not wait for it. So each open file has its own thread, which does the
//! jobs of the file in order and reports the results as [`FileEvent`]s. Without an open file there
//! is no such thread.
//!
//! The service bounds the bytes that wait for a file: while its session lives, at most two writes
//! of about 1 MiB are under way.
//!
//! The daemon and the service inside of a program share this crate. [`Host`] has their differences.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod files;
mod queue;
mod torn_packet;
mod worker;

pub use files::Files;
pub use torn_packet::cut_torn_packet;
pub use worker::{FileEvent, Host};
