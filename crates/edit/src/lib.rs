//! Makes Perfetto traces of Perfetto traces, packet by packet.
//!
//! - [`Cut`] keeps an interval of time, and everything that it needs to be a trace of its own. A
//!   [`Survey`] makes it, which also finds the times of the first and of the last event.
//! - [`Merge`] makes one trace of several of one machine.
//! - [`Redact`] leaves out fields and overwrites texts.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod cut;
mod merge;
mod merged_stats;
mod packet;
mod redact;

pub use cut::{Cut, CutCounts, Survey};
pub use merge::{Merge, MergeError, SAME_BOOT_NS};
pub use redact::Redact;
