//! The cases of the group `sdk`, with `fastrace`: each batch is the content of a root span, which a
//! thread collects in the background.
//!
//! It has no counters and no flows. A disabled trace point is one outside of any root span.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Duration;

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use fastrace::collector::{Config, Reporter};
use fastrace::prelude::*;

const CASES: &[Case] = &[
    Case::new(Operation::Disabled, disabled),
    Case::new(Operation::DisabledArguments, disabled_with_arguments),
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Instant, instant),
];

fn disabled(batch: &mut Batch) {
    batch.time(|i| {
        drop(LocalSpan::enter_with_local_parent("off"));
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        drop(
            LocalSpan::enter_with_local_parent("off")
                .with_properties(|| [("number", i.to_string().into()), ("text", std::borrow::Cow::Borrowed(text))]),
        );
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    let root = Span::root("root", SpanContext::random());
    let _parent = root.set_local_parent();
    batch.time(|_| drop(LocalSpan::enter_with_local_parent("pair")));
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    let root = Span::root("root", SpanContext::random());
    let _parent = root.set_local_parent();
    batch.time(|i| {
        drop(
            LocalSpan::enter_with_local_parent("arguments")
                .with_properties(|| [("number", i.to_string().into()), ("text", std::borrow::Cow::Borrowed(text))]),
        );
    });
}

fn instant(batch: &mut Batch) {
    let root = Span::root("root", SpanContext::random());
    let _parent = root.set_local_parent();
    batch.time(|_| LocalSpan::add_event(Event::new("instant")));
}

/// Takes the spans from the collector, and drops them.
struct Nobody;

impl Reporter for Nobody {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        black_box(spans);
    }
}

fn start(_: &Options) {
    fastrace::set_reporter(Nobody, Config::default().report_interval(Duration::from_millis(10)));
}

fn finish() -> Finished {
    fastrace::flush();
    Finished::default()
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
