//! Promises of custom data sources while the memory shared with the service is full.
//!
//! These tests fill the memory of their process, so packets of other data sources are dropped.
//! Tests that count on every packet are in another program (`data_sources`).

use std::sync::{Mutex, MutexGuard, PoisonError};

mod a_full_memory_is_survived;
#[path = "../data_sources/recording.rs"]
mod recording;
mod stops_may_race_with_trace_points;

/// Only one test at a time uses the memory.
static MEMORY: Mutex<()> = Mutex::new(());

fn own_memory() -> MutexGuard<'static, ()> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}
