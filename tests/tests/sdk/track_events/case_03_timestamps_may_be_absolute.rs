use esatto_tests::sdk::{Recorder, Trace};

use super::{all, boot_ns, sequences};

esatto::categories! { static APP = "app"; }

mod in_nanoseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1), |trace| super::check(trace, 1, 6));
}

mod in_microseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1000), |trace| super::check(trace, 1000, 65));
}

fn record(recorder: &Recorder, unit_ns: u64) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| {
        events.disable_incremental_timestamps = Some(true);
        events.timestamp_unit_multiplier = Some(unit_ns);
    }));
    recorder.note("before", boot_ns());
    for _ in 0..10 {
        esatto::instant!(APP, "tick");
    }
    recorder.note("after", boot_ns());
    recorder.finish(session);
}

fn check(trace: &Trace, unit_ns: u64, clock: u32) {
    let [ticks] = trace.query(["select ts from slice order by id"]);
    let fact = |name| trace.fact(name).parse::<i64>().expect("a number");
    assert_eq!(ticks.len(), 10);
    assert!(ticks[0].int("ts") > fact("before") - unit_ns as i64 - 1000);
    assert!(ticks[9].int("ts") < fact("after") + unit_ns as i64 + 1000);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    assert_eq!(packets[0].trace_packet_defaults().expect("defaults").timestamp_clock_id(), Some(clock));
    let clocks = packets[0].clock_snapshot();
    assert_eq!(clocks.is_some(), unit_ns != 1, "the trace clock needs no snapshot");
    let ids: Vec<_> = clocks.iter().flat_map(|snapshot| snapshot.clocks()).filter_map(|c| c.clock_id()).collect();
    assert!(ids.is_empty() || ids == [6, 65], "{ids:?}");
    // The reader adds this to the product: the fraction of a unit at the time of the snapshot.
    let rest = clocks.map_or(0, |snapshot| snapshot.clocks().next().and_then(|c| c.timestamp()).unwrap_or(0) % unit_ns);
    let events = packets.iter().filter(|packet| packet.track_event().is_some());
    for (event, tick) in events.zip(&ticks) {
        assert_eq!(event.timestamp().expect("a time") * unit_ns + rest, tick.int("ts") as u64);
        assert_eq!(event.timestamp_clock_id(), None);
    }
}
