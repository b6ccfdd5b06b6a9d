//! The cases of the group `sdk`, with `puffin`: each batch is the content of a scope and a frame.
//!
//! It has neither counters, instants nor flows, and a single string as argument. A disabled trace
//! point is one while scopes are off.

#![forbid(unsafe_code)]

use std::hint::black_box;

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use puffin::GlobalProfiler;

const CASES: &[Case] = &[
    Case::new(Operation::Disabled, disabled),
    Case::new(Operation::DisabledArguments, disabled_with_arguments),
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_string),
];

fn disabled(batch: &mut Batch) {
    puffin::set_scopes_on(false);
    batch.time(|i| {
        puffin::profile_scope!("off");
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    puffin::set_scopes_on(false);
    batch.time(|i| {
        puffin::profile_scope!("off", text);
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    puffin::set_scopes_on(true);
    {
        puffin::profile_scope!("batch");
        batch.time(|_| {
            puffin::profile_scope!("pair");
        });
    }
    GlobalProfiler::lock().new_frame();
}

fn pair_with_string(batch: &mut Batch) {
    let text = black_box(TEXT);
    puffin::set_scopes_on(true);
    {
        puffin::profile_scope!("batch");
        batch.time(|_| {
            puffin::profile_scope!("arguments", text);
        });
    }
    GlobalProfiler::lock().new_frame();
}

fn start(_: &Options) {}

fn finish() -> Finished {
    Finished::default()
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
