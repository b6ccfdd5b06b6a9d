//! The cases of the group `sdk`, with `tracy-client`: everything stays in memory, as there is no
//! server. With feature `ondemand` nothing is recorded therefore, and all cases are disabled ones.
//!
//! It has no flows and no text without a span but messages.

#![forbid(unsafe_code)]

use std::hint::black_box;

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use tracy_client::{Client, plot, span};

#[cfg(feature = "ondemand")]
const CASES: &[Case] =
    &[Case::new(Operation::Disabled, disabled), Case::new(Operation::DisabledArguments, disabled_with_arguments)];

#[cfg(not(feature = "ondemand"))]
const CASES: &[Case] = &[
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Counter, counter),
];

#[cfg(feature = "ondemand")]
fn disabled(batch: &mut Batch) {
    batch.time(|i| {
        drop(span!("off"));
        black_box(i);
    });
}

#[cfg(feature = "ondemand")]
fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        let span = span!("off");
        span.emit_value(i);
        span.emit_text(text);
        drop(span);
        black_box(i);
    });
}

#[cfg(not(feature = "ondemand"))]
fn pair(batch: &mut Batch) {
    batch.time(|_| drop(span!("pair")));
}

#[cfg(not(feature = "ondemand"))]
fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        let span = span!("arguments");
        span.emit_value(i);
        span.emit_text(text);
    });
}

#[cfg(not(feature = "ondemand"))]
fn counter(batch: &mut Batch) {
    batch.time(|i| plot!("depth", black_box(i) as f64));
}

fn start(_: &Options) {
    // It runs as long as the process does.
    let _ = Client::start();
}

fn finish() -> Finished {
    Finished::default()
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
