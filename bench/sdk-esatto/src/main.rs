//! The cases of the group `sdk`, with Esatto: `--clock counter|boot-time`, `--place
//! system|in-process`, `--shm-kb N`.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use esatto::schema::{DataSourceConfig, TraceConfig, TrackEventConfig, trace_config};
use esatto::{Backend, Clock, CounterTrack, Flow, Session, Tracing};

esatto::categories! {
    static BENCH = "bench";
    static OFF = "off";
}

static DEPTH: CounterTrack = CounterTrack::new("depth");
static TRACING: OnceLock<Tracing> = OnceLock::new();
/// In-process: the program's own.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

const CASES: &[Case] = &[
    Case::new(Operation::Disabled, disabled),
    Case::new(Operation::DisabledArguments, disabled_with_arguments),
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Counter, counter),
    Case::new(Operation::Instant, instant),
    Case::new(Operation::Flow, flow),
];

fn disabled(batch: &mut Batch) {
    batch.time(|i| {
        esatto::instant!(OFF, "off");
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        esatto::instant!(OFF, "off", number = i, text = text);
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    batch.time(|_| {
        esatto::begin!(BENCH, "pair");
        esatto::end!(BENCH);
    });
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        esatto::begin!(BENCH, "arguments", number = i, text = text);
        esatto::end!(BENCH);
    });
}

fn counter(batch: &mut Batch) {
    batch.time(|i| esatto::counter!(BENCH, &DEPTH, i));
}

fn instant(batch: &mut Batch) {
    batch.time(|_| {
        esatto::instant!(BENCH, "instant");
    });
}

fn flow(batch: &mut Batch) {
    batch.time(|i| {
        esatto::instant!(BENCH, "flow", flow: Flow::process(i));
    });
}

fn start(options: &Options) {
    let clock = match options.get("clock") {
        Some("boot-time") => Clock::BootTime,
        _ => Clock::Counter,
    };
    let shm_kb = options.get("shm-kb").map_or(0, |kb| kb.parse().expect("KiB"));
    let builder = Tracing::builder().categories(CATEGORIES).clock(clock).shared_memory(shm_kb, 0);
    let in_process = options.get("place") == Some("in-process");
    let builder = if in_process { builder.in_process() } else { builder.system() };
    let tracing = builder.start().expect("tracing starts");
    if in_process {
        let session = Session::start(Backend::InProcess, config()).expect("the session starts");
        *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
    assert!(tracing.wait_until_enabled(&BENCH, Duration::from_secs(60)), "nobody records the category `bench`");
    TRACING.set(tracing).expect("only once");
}

/// The same as the runner's for the service.
fn config() -> TraceConfig {
    let categories = TrackEventConfig {
        enabled_categories: vec!["bench".into()],
        disabled_categories: vec!["*".into()],
        ..Default::default()
    };
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(categories)),
        ..Default::default()
    };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(131_072), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

fn finish() -> Finished {
    let tracing = TRACING.get().expect("started before");
    assert!(tracing.flush(Duration::from_secs(10)), "the service answers");
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).take();
    Finished { events: 0, trace: session.map(|session| session.stop().expect("the session stops")) }
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
