use esatto_tests::sdk::{Recorder, Trace};

use super::{all, boot_ns, sequences};

esatto::categories! { static APP = "app"; }

/// Tolerance between the clock of the events and the system's.
const ERROR_NS: i64 = 1000;

mod in_nanoseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1), |trace| super::check(trace, 1));
}

mod in_microseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1000), |trace| super::check(trace, 1000));
}

fn record(recorder: &Recorder, unit_ns: u64) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| events.timestamp_unit_multiplier = Some(unit_ns)));
    for _ in 0..500 {
        let before = boot_ns();
        esatto::instant!(APP, "tick", before = before);
        let after = boot_ns();
        esatto::instant!(APP, "after", after = after);
        std::thread::yield_now();
    }
    recorder.finish(session);
}

fn check(trace: &Trace, unit_ns: i64) {
    let [ticks] = trace.query(["select ts, name, extract_arg(arg_set_id, 'debug.before') as before,
        extract_arg(arg_set_id, 'debug.after') as after from slice order by id"]);
    assert_eq!(ticks.len(), 1000);
    for pair in ticks.chunks(2) {
        let ts = pair[0].int("ts");
        // A unit is lost to rounding, and no more, however many events there were.
        assert!(ts > pair[0].int("before") - unit_ns - ERROR_NS, "{pair:?}");
        assert!(ts < pair[1].int("after") + ERROR_NS, "{pair:?}");
    }
    assert!(ticks.windows(2).all(|pair| pair[0].int("ts") <= pair[1].int("ts")));

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    assert!(packets.iter().all(|packet| packet.timestamp_clock_id().is_none()), "all of the default clock");
    let clocks: Vec<_> = packets[0].clock_snapshot().expect("a snapshot").clocks().collect();
    assert_eq!(clocks[1].unit_multiplier_ns(), Some(unit_ns as u64));
    let anchor = clocks[0].timestamp().expect("a time") as i64;
    let units: u64 = packets.iter().filter_map(|packet| packet.timestamp()).sum();
    assert_eq!(
        anchor + units as i64 * unit_ns,
        ticks[999].int("ts"),
        "the snapshot and all differences are the last time"
    );
}
