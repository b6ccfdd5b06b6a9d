//! `esatto-producer THREADS ROUNDS PAUSE_US [WAIT_S [RECORDINGS]]`
//!
//! The counterpart of `official-producer` (`xtask/peers/producer`) on our SDK. It connects to the
//! tracing service (`PERFETTO_PRODUCER_SOCK_NAME`), and waits up to WAIT_S seconds (default 10)
//! until its category "rendering" is recorded (by so many RECORDINGS, default 1; with 0 it does not
//! wait). Then it lets THREADS threads emit ROUNDS rounds each, and exits.
//! `esatto_tests::workload` defines a round.

#![forbid(unsafe_code)]

use esatto::{CounterTrack, Flow, Tracing, Track, begin, counter, end, instant, slice};
use std::process::ExitCode;
use std::time::{Duration, Instant};

esatto::categories! {
    static RENDERING = "rendering", "Frames and what they consist of", tags: ["ui"];
    static DEBUG = "debug", "Details", tags: ["slow"];
}

static DEPTH: CounterTrack = CounterTrack::new("queue depth");

fn rounds(thread: u64, rounds: u64, pause: Duration) {
    let gpu = Track::with_name("gpu", thread);
    for i in 0..rounds {
        let flow = Flow::process(thread << 32 | i);
        let _frame = slice!(
            RENDERING,
            "frame",
            round = i,
            offset = -i64::try_from(i).unwrap_or(i64::MAX),
            ratio = i as f64 / 4.0,
            even = i % 2 == 0,
            label = "grün",
            address = std::ptr::without_provenance::<u8>(0xdead_beef),
        );
        {
            let _draw = slice!(RENDERING, "draw", |event| event.flow(flow));
            begin!(DEBUG, "details");
            instant!(RENDERING, "tick");
            counter!(RENDERING, &DEPTH, thread * 100 + i % 10);
            std::thread::sleep(pause);
            end!(DEBUG);
        }
        begin!(RENDERING, track: &gpu, "upload", |event| event.end_flow(flow));
        end!(RENDERING, track: &gpu);
    }
    instant!(RENDERING, "done");
}

fn main() -> ExitCode {
    let args: Option<Vec<u64>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let Some([threads, count, pause_us, rest @ ..]) = args.as_deref() else {
        eprintln!("esatto-producer THREADS ROUNDS PAUSE_US [WAIT_S [RECORDINGS]]");
        return ExitCode::from(2);
    };
    let wait = Duration::from_secs(rest.first().copied().unwrap_or(10));
    let tracing = match Tracing::builder().system().categories(CATEGORIES).start() {
        Ok(tracing) => tracing,
        Err(error) => {
            eprintln!("esatto-producer: {error}");
            return ExitCode::FAILURE;
        }
    };
    let start = Instant::now();
    let recordings = rest.get(1).copied().unwrap_or(1);
    if recordings > 0 && !tracing.wait_until_enabled(&RENDERING, wait) {
        eprintln!("esatto-producer: not recorded within {wait:?}");
        return ExitCode::FAILURE;
    }
    // Sessions start one after the other.
    while u64::from(RENDERING.recordings()) < recordings && start.elapsed() < wait {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::scope(|scope| {
        for thread in 0..*threads {
            let worker = std::thread::Builder::new().name(format!("worker-{thread}"));
            let (count, pause) = (*count, Duration::from_micros(*pause_us));
            worker.spawn_scoped(scope, move || rounds(thread, count, pause)).expect("a thread");
        }
    });
    println!("esatto-producer: {threads} threads x {count} rounds in {:?}", start.elapsed());
    ExitCode::SUCCESS
}
