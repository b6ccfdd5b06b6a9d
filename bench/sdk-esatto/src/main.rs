//! The cases of the group `sdk`, with Esatto.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

use bench_harness::{Case, Program};
use esatto::{CounterTrack, Tracing};

esatto::categories! {
    static BENCH = "bench";
    static OFF = "off";
}

static DEPTH: CounterTrack = CounterTrack::new("depth");
static TRACING: OnceLock<Tracing> = OnceLock::new();

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
        esatto::begin!(BENCH, "pair");
        esatto::end!(BENCH);
    }
}

fn pair_with_arguments(n: u64) {
    let text = black_box("fifteen bytes !");
    for i in 0..n {
        esatto::begin!(BENCH, "arguments", number = i, text = text);
        esatto::end!(BENCH);
    }
}

fn counter(n: u64) {
    for i in 0..n {
        esatto::counter!(BENCH, &DEPTH, i);
    }
}

fn instant(n: u64) {
    for _ in 0..n {
        esatto::instant!(BENCH, "instant");
    }
}

fn disabled(n: u64) {
    for i in 0..n {
        esatto::begin!(OFF, "off");
        black_box(i);
        esatto::end!(OFF);
    }
}

fn disabled_with_arguments(n: u64) {
    let text = black_box("fifteen bytes !");
    for i in 0..n {
        esatto::instant!(OFF, "off", number = i, text = text);
        black_box(i);
    }
}

fn start() {
    let tracing = Tracing::builder().system().categories(CATEGORIES).start().expect("tracing starts");
    assert!(tracing.wait_until_enabled(&BENCH, Duration::from_secs(60)), "nobody records the category `bench`");
    TRACING.set(tracing).expect("only once");
}

fn finish() -> u64 {
    let tracing = TRACING.get().expect("started before");
    assert!(tracing.flush(Duration::from_secs(10)), "the service answers");
    0
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
