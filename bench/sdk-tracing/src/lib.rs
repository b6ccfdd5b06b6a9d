//! The cases of the group `sdk` with `tracing`, for any installed subscriber.
//!
//! A slice pair is a span that is made, entered, left and closed; *entered and left* is a span that
//! was made before. An instant is an event.

#![forbid(unsafe_code)]

use std::hint::black_box;

use bench_harness::{Batch, Case, Operation, TEXT};

/// All of them.
pub const CASES: &[Case] = &[
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Enter, enter),
    Case::new(Operation::Instant, instant),
];

fn pair(batch: &mut Batch) {
    batch.time(|_| drop(tracing::info_span!("pair").entered()));
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| drop(tracing::info_span!("arguments", number = i, text = text).entered()));
}

fn enter(batch: &mut Batch) {
    let span = tracing::info_span!("enter");
    batch.time(|_| drop(span.enter()));
}

fn instant(batch: &mut Batch) {
    batch.time(|_| tracing::info!("instant"));
}
