//! Data sources of the operating system: what the machine itself does while programs are traced.
//!
//! A producer (`control`) connects to the tracing service and offers the data sources of this
//! crate. It passes the commands of the service to a `worker`, the thread on which the data sources
//! read the system and write packets. `docs/spec/probes.md` specifies what each data source reads
//! and writes.
//!
//! Parsers of foreign bytes (pages of the kernel's ring buffer, files of `/proc`, the journal) are
//! values without I/O.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod boosts;
mod clocks;
mod control;
mod data_source;
mod ftrace;
mod ftrace_reset;
#[doc(hidden)]
pub mod fuzzing;
mod inode_file_map;
mod instances;
mod journald;
mod mailbox;
mod metatrace;
mod polled_file;
mod polled_folder;
pub mod presets;
pub mod privileges;
mod probes;
mod probes_program;
mod problem;
mod proc_folder;
mod process_smaps;
mod process_stats;
mod replies;
mod sources;
mod sys_stats;
mod sysfs_power;
mod system_info;
mod ticks;
mod words;
mod worker;

#[cfg(test)]
mod test_folder;
#[cfg(test)]
mod test_writer;

pub use ftrace::{atrace_categories, closest_ftrace_event, is_atrace_category};
pub use inode_file_map::DEFAULT_SCAN_DELAY_MS;
pub use probes::{Options, Probes, ProbesHandle};
pub use probes_program::{TRACED_PROBES_HELP, traced_probes, traced_probes_as};
