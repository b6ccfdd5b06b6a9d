//! The cases of the group `sdk`, with `perfetto-recorder`. Threads record into their own memory,
//! which the program turns into a trace later.
//!
//! It has no categories and no flows. A disabled trace point is one before recording begins.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Mutex;

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use perfetto_recorder::{
    CounterUnit, EVENTS_PER_ARG, EVENTS_PER_COUNTER, EVENTS_PER_SPAN, ThreadTraceData, TraceBuilder,
    current_thread_reserve, start_span,
};

const CASES: &[Case] = &[
    Case::new(Operation::Disabled, disabled),
    Case::new(Operation::DisabledArguments, disabled_with_arguments),
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Counter, counter),
];

/// The last recording.
static LAST: Mutex<Option<ThreadTraceData>> = Mutex::new(None);

fn disabled(batch: &mut Batch) {
    batch.time(|i| {
        drop(start_span!("off"));
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        drop(start_span!("off", number = i, text = text));
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    prepare(Operation::Pair, EVENTS_PER_SPAN);
    batch.time(|_| drop(start_span!("pair")));
    take();
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    prepare(Operation::Arguments, EVENTS_PER_SPAN + 2 * EVENTS_PER_ARG);
    batch.time(|i| drop(start_span!("arguments", number = i, text = text)));
    take();
}

fn counter(batch: &mut Batch) {
    prepare(Operation::Counter, EVENTS_PER_COUNTER);
    let mut builder = TraceBuilder::new().expect("recording has begun");
    let mut depth = builder.create_counter_track("depth", CounterUnit::Count, 1, false);
    batch.time(|i| depth.record_i64(perfetto_recorder::time(), i as i64));
    take();
}

/// Begins recording, and makes room for a batch, as is advised.
fn prepare(operation: Operation, events: usize) {
    perfetto_recorder::start().expect("compiled with recording");
    current_thread_reserve(operation.per_batch() as usize * events);
}

fn take() {
    *LAST.lock().expect("nobody panics") = Some(ThreadTraceData::take_current_thread());
}

fn start(_: &Options) {}

/// The trace of the last batch, for what its events take in a file.
fn finish() -> Finished {
    let last = LAST.lock().expect("nobody panics").take();
    let trace =
        last.map(|data| TraceBuilder::new().expect("recording has begun").process_thread_data(&data).encode_to_vec());
    Finished { events: 0, trace }
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
