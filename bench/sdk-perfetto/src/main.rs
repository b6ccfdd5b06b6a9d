//! The cases of the group `sdk`, with Perfetto's official Rust SDK.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bench_harness::{Case, Program};
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
    Case { name: "slice pair", ops: 400, events: 2, run: pair },
    Case { name: "slice pair with u64 and 15-byte string", ops: 400, events: 2, run: pair_with_arguments },
    Case { name: "counter", ops: 800, events: 1, run: counter },
    Case { name: "instant", ops: 800, events: 1, run: instant },
    Case { name: "disabled slice pair", ops: 20_000, events: 0, run: disabled },
    Case { name: "disabled instant with two arguments", ops: 20_000, events: 0, run: disabled_with_arguments },
];

fn pair(n: u64) {
    for _ in 0..n {
        track_event_begin!("bench", "pair");
        track_event_end!("bench");
    }
}

fn pair_with_arguments(n: u64) {
    let text = black_box("fifteen bytes !");
    for i in 0..n {
        track_event_begin!("bench", "arguments", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        track_event_end!("bench");
    }
}

fn counter(n: u64) {
    let depth = DEPTH.get().expect("made at the start");
    for i in 0..n {
        track_event_counter!("bench", |ctx: &mut EventContext| {
            ctx.set_track(depth);
            ctx.set_counter(TrackEventCounter::Int64(i as i64));
        });
    }
}

fn instant(n: u64) {
    for _ in 0..n {
        track_event_instant!("bench", "instant");
    }
}

fn disabled(n: u64) {
    for i in 0..n {
        track_event_begin!("off", "off");
        black_box(i);
        track_event_end!("off");
    }
}

fn disabled_with_arguments(n: u64) {
    let text = black_box("fifteen bytes !");
    for i in 0..n {
        track_event_instant!("off", "off", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        black_box(i);
    }
}

fn start() {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::SYSTEM).build());
    TrackEvent::init();
    categories::register().expect("first registration");
    let start = Instant::now();
    while !track_event_category_enabled!("bench") {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody records the category `bench`");
        std::thread::sleep(Duration::from_millis(2));
    }
    let process = TrackEventTrack::process_track_uuid();
    let depth = TrackEventTrack::register_counter_track("depth", process).expect("a counter track");
    assert!(DEPTH.set(depth).is_ok(), "only once");
}

/// Events are handed over by a thread of the library's own; the flag makes this thread's last ones go now.
fn finish() -> u64 {
    track_event_instant!("bench", "last", |ctx: &mut EventContext| {
        ctx.set_flush();
    });
    std::thread::sleep(Duration::from_millis(200));
    1
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
