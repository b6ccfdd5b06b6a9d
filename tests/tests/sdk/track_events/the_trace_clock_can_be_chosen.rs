//! `docs/spec/track-event.md` §11: the emitter's clock may be another than boot time; the service's
//! snapshots connect them.

use esatto::Clock;
use esatto_tests::sdk::{Recorder, Trace};

use super::{all, boot_ns, sequences};

esatto::categories! { static APP = "app"; }

/// Between clocks the trace processor converts by snapshots that read one after the other.
const ERROR_NS: i64 = 1_000_000;

mod monotonic {
    use super::*;
    esatto_tests::scenario!(|recorder| record(recorder, Clock::Monotonic, false), |trace| check(trace, 3, 64));
}

mod monotonic_raw {
    use super::*;
    esatto_tests::scenario!(|recorder| record(recorder, Clock::MonotonicRaw, false), |trace| check(trace, 5, 64));
}

mod monotonic_absolute {
    use super::*;
    esatto_tests::scenario!(|recorder| record(recorder, Clock::Monotonic, true), |trace| check(trace, 3, 3));
}

mod boot_time {
    use super::*;
    esatto_tests::scenario!(|recorder| record(recorder, Clock::BootTime, true), |trace| check(trace, 6, 6));
}

fn record(recorder: &Recorder, clock: Clock, absolute: bool) {
    let _tracing = recorder.builder().categories(CATEGORIES).clock(clock).start().expect("starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(all(|events| events.disable_incremental_timestamps = Some(absolute)));
    recorder.note("before", boot_ns());
    for _ in 0..10 {
        esatto::instant!(APP, "tick");
    }
    recorder.note("after", boot_ns());
    recorder.finish(session);
}

fn check(trace: &Trace, trace_clock: u32, default_clock: u32) {
    let [ticks] = trace.query(["select ts from slice order by id"]);
    let fact = |name| trace.fact(name).parse::<i64>().expect("a number");
    assert_eq!(ticks.len(), 10);
    for tick in ticks {
        let ts = tick.int("ts");
        assert!(
            ts > fact("before") - ERROR_NS && ts < fact("after") + ERROR_NS,
            "{} after the begin",
            ts - fact("before")
        );
    }
    let packets = trace.packets();
    let sequences = sequences(&packets);
    let first = sequences[0][0];
    assert_eq!(first.trace_packet_defaults().and_then(|d| d.timestamp_clock_id()), Some(default_clock));
    let clocks: Vec<_> = first.clock_snapshot().iter().flat_map(|s| s.clocks()).filter_map(|c| c.clock_id()).collect();
    let expected: &[u32] = if default_clock == trace_clock { &[] } else { &[trace_clock, 64] };
    assert_eq!(clocks, expected);
}
