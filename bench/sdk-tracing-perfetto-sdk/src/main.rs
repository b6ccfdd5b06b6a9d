//! The cases of the group `sdk`, with the layer of Perfetto's official Rust SDK. With
//! `--session none` no session records.

use std::time::{Duration, Instant};

use bench_harness::{Finished, Options, Program};
use perfetto_sdk::track_event_category_enabled;
use tracing_perfetto_sdk::{PerfettoLayer, perfetto_te_ns};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn start(options: &Options) {
    tracing_perfetto_sdk::init_in_process();
    tracing_subscriber::registry().with(PerfettoLayer::new()).init();
    if options.get("session") == Some("none") {
        return;
    }
    bench_sdk_perfetto::record("tracing");
    let start = Instant::now();
    while !track_event_category_enabled!("tracing") {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody records the category `tracing`");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn finish() -> Finished {
    Finished { events: 0, trace: bench_sdk_perfetto::stop() }
}

fn main() {
    bench_harness::run(&Program { cases: bench_sdk_tracing::CASES, start, finish });
}
