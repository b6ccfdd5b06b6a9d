//! Cost of `tracing` without a recording. `--subscriber no-op` installs a subscriber that does
//! nothing, `--subscriber registry` a `Registry` with a layer that does nothing.

#![forbid(unsafe_code)]

use bench_harness::{Finished, Options, Program};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

struct NoOp;

impl Subscriber for NoOp {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl<S: Subscriber> Layer<S> for NoOp {}

fn start(options: &Options) {
    let installed = match options.get("subscriber") {
        Some("registry") => tracing::subscriber::set_global_default(Registry::default().with(NoOp)),
        _ => tracing::subscriber::set_global_default(NoOp),
    };
    installed.expect("the only one");
}

fn finish() -> Finished {
    Finished::default()
}

fn main() {
    bench_harness::run(&Program { cases: bench_sdk_tracing::CASES, start, finish });
}
