//! Tests of the promises of `docs/spec/shared-memory.md` §22, one module per area.

#![cfg(not(esatto_loom))]
#![allow(missing_docs, reason = "tests")]

mod chunk_states;
mod commits;
mod deferred_values;
mod deferred_values_at_random;
mod emulated_memory;
mod exhaustion;
mod golden;
mod hostile_memory;
mod leaked_guards;
mod loss_marks;
mod panicking_notifications;
mod patches;
mod protozero_cases;
mod reading;
mod rig;
mod scraping;
mod small_packets;
mod startup;
mod threads;
#[cfg(target_os = "linux")]
mod unused_pages;
mod writing;
