//! Converts Perfetto traces to and from other formats.
//!
//! From the tables of a trace ([`esatto_trace::Engine`]):
//!
//! - [`write_chrome_json`]: the JSON of Chrome's `about:tracing`, which many viewers read;
//! - [`write_folded`]: folded stacks, for flame graphs;
//! - [`write_speedscope`]: profiles for speedscope;
//! - [`write_pprof`]: a profile for pprof.
//!
//! The last three know three kinds of content ([`StackKind`]): slices, samples of call stacks, and
//! allocations of heap profiles.
//!
//! [`ChromeJson`] goes the other way: it reads Chrome JSON as a Perfetto trace.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod chrome_json;
mod folded;
mod nesting;
mod owners;
mod pprof;
mod speedscope;
mod stacks;

pub use chrome_json::{ChromeJson, JsonError, JsonLosses, JsonSummary, MAX_EVENT_BYTES, write_chrome_json};
pub use folded::write_folded;
pub use pprof::{wall_time, write_pprof};
pub use speedscope::write_speedscope;
pub use stacks::{StackKind, Stacks};
