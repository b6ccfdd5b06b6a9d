//! The cases of the group `sdk`, with Perfetto's official Rust SDK: `--place system|in-process`,
//! `--shm-kb N`.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use perfetto_sdk::{
    producer::*, track_event::*, track_event_begin, track_event_categories, track_event_category_enabled,
    track_event_counter, track_event_end, track_event_instant,
};

track_event_categories! {
    pub mod categories {
        ( "bench", "", [] ),
        ( "off", "", [] ),
    }
}
use categories as perfetto_te_ns;

static DEPTH: OnceLock<TrackEventTrack> = OnceLock::new();

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
        track_event_instant!("off", "off");
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        track_event_instant!("off", "off", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    batch.time(|_| {
        track_event_begin!("bench", "pair");
        track_event_end!("bench");
    });
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        track_event_begin!("bench", "arguments", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        track_event_end!("bench");
    });
}

fn counter(batch: &mut Batch) {
    let depth = DEPTH.get().expect("made at the start");
    batch.time(|i| {
        track_event_counter!("bench", |ctx: &mut EventContext| {
            ctx.set_track(depth);
            ctx.set_counter(TrackEventCounter::Int64(i as i64));
        });
    });
}

fn instant(batch: &mut Batch) {
    batch.time(|_| {
        track_event_instant!("bench", "instant");
    });
}

fn flow(batch: &mut Batch) {
    batch.time(|i| {
        track_event_instant!("bench", "flow", |ctx: &mut EventContext| {
            ctx.set_flow(&TrackEventFlow::process_scoped_flow(i));
        });
    });
}

fn start(options: &Options) {
    let in_process = options.get("place") == Some("in-process");
    let backend = if in_process { Backends::IN_PROCESS } else { Backends::SYSTEM };
    let mut args = ProducerInitArgsBuilder::new().backends(backend);
    if let Some(kb) = options.get("shm-kb") {
        args = args.shmem_size_hint_kb(kb.parse().expect("KiB"));
    }
    Producer::init(args.build());
    TrackEvent::init();
    categories::register().expect("first registration");
    if in_process {
        bench_sdk_perfetto::record("bench");
    }
    let start = Instant::now();
    while !track_event_category_enabled!("bench") {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody records the category `bench`");
        std::thread::sleep(Duration::from_millis(2));
    }
    let process = TrackEventTrack::process_track_uuid();
    let depth = TrackEventTrack::register_counter_track("depth", process).expect("a counter track");
    assert!(DEPTH.set(depth).is_ok(), "only once");
}

/// Events are handed over by a thread of the library's own; the flag makes this thread's last ones
/// go now.
fn finish() -> Finished {
    track_event_instant!("bench", "last", |ctx: &mut EventContext| {
        ctx.set_flush();
    });
    std::thread::sleep(Duration::from_millis(200));
    Finished { events: 1, trace: bench_sdk_perfetto::stop() }
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
