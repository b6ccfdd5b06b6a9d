//! Whole-system and interop tests: the harness.
//!
//! A [`Harness`] is a private folder with private sockets. In it run services, producers and
//! consumers of either [`Implementation`]: ours, or Perfetto's own programs. Perfetto's trace
//! processor ([`tp`]) judges their traces. The expected events are those that the applications emit
//! ([`workload`]), so one checker serves all conversations. Scenarios of the SDK ([`sdk`]) run in a
//! process of their own, with each backend.
//!
//! The tests themselves are in `tests/tests`: one program per area, one file per promise.

#![forbid(unsafe_code)]

mod again;
pub mod by_hand;
pub mod bystander;
pub mod fake;
mod harness;
mod implementation;
#[cfg(doctest)]
mod pages;
pub mod peers;
mod program;
pub mod raw;
pub mod sdk;
mod skip;
mod terminal;
pub mod tiny_disk;
pub mod tp;
mod tracefs;
mod tracefs_instance;
pub mod ui;
pub mod wire;
pub mod workload;

pub use again::Again;
pub use harness::{Harness, Recording};
pub use implementation::{Conversation, Implementation};
pub use peers::{Peer, beside_this_test, esatto_bin, filter_bin, node_modules, protoc_plugin};
pub use program::{DEADLINE, Program, Signal, wait_until};
pub use skip::{Skip, skip};
pub use terminal::Terminal;
pub use tracefs::mount_tracefs;
pub use tracefs_instance::Instance;
