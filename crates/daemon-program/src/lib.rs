//! Parts that the daemons share: `traced`, `traced_relay` and `traced_probes`.
//!
//! - [`Program`]: the command line of a daemon, with the options that all have.
//! - [`command_line`]: options in the style of GNU `getopt_long`.
//! - [`background`]: `--background`, which serves without a terminal.
//! - [`stderr_log`]: the log.
//! - [`process`]: signals, limits, and readiness for the process that started this one.
//! - [`ThreadPriority`]: `priority_boost` of a config.
//! - [`ServiceManager`]: messages of sd_notify(3).
//! - [`closest`]: the name that a mistyped one probably means.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod background;
pub mod command_line;
pub mod process;
pub mod program;
mod service_manager;
pub mod stderr_log;
mod suggestion;
mod thread_priority;
mod verbosity;

pub use program::{Program, Start};
pub use service_manager::ServiceManager;
pub use suggestion::closest;
pub use thread_priority::{PriorityBoost, ThreadPriority};
pub use verbosity::Verbosity;
