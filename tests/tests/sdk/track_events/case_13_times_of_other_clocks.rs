use std::time::{Duration, Instant, SystemTime};

use esatto::{CounterTrack, CustomClock, Timestamp, Track};
use esatto_tests::sdk::{Recorder, Trace};

use super::{all, boot_ns, sequences};

esatto::categories! { static APP = "app"; }
static LATER: Track = Track::with_name("later", 0);
static COUNTER: CounterTrack = CounterTrack::new("counter");
/// The spec's example: a tick takes 3 ns.
static DEVICE: CustomClock = CustomClock::new(66, 3);
static SHARED: CustomClock = CustomClock::new(200, 1000);
static NEVER: CustomClock = CustomClock::new(67, 1);

mod incremental {
    esatto_tests::scenario!(|recorder| super::record(recorder, false, 1), super::check);
}

mod absolute {
    esatto_tests::scenario!(|recorder| super::record(recorder, true, 1), super::check);
}

mod in_microseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, false, 1000), super::check);
}

fn record(recorder: &Recorder, absolute: bool, unit_ns: u64) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| {
        events.disable_incremental_timestamps = Some(absolute);
        events.timestamp_unit_multiplier = Some(unit_ns);
    }));
    let base = boot_ns() as u64;
    // The first event of the sequence is of another clock.
    assert!(DEVICE.anchor_at(base + 1000, 500));
    esatto::instant!(APP, track: &LATER, "600", at: DEVICE.ticks(600));
    assert!(DEVICE.anchor_at(base + 2000, 800));
    for ticks in [799, 810] {
        esatto::instant!(APP, track: &LATER, dynamic: ticks.to_string(), at: DEVICE.ticks(ticks));
    }
    assert!(SHARED.anchor_at(base, 10));
    esatto::instant!(APP, track: &LATER, "shared", at: SHARED.ticks(17));
    std::thread::spawn(|| esatto::instant!(APP, track: &LATER, "elsewhere", at: SHARED.ticks(18))).join().unwrap();
    esatto::begin!(APP, track: &LATER, "trace clock", at: Timestamp::trace_ns(base + 50_000));
    esatto::end!(APP, track: &LATER, at: Timestamp::boot_ns(base + 51_000));
    esatto::counter!(APP, &COUNTER, 5, at: Timestamp::trace_ns(base + 60_000));
    let (instant, system, before) = (Instant::now(), SystemTime::now(), boot_ns());
    esatto::instant!(APP, "now");
    esatto::instant!(APP, track: &LATER, "instant", at: instant - Duration::from_millis(5));
    esatto::instant!(APP, track: &LATER, "system", at: system - Duration::from_millis(5));
    esatto::instant!(APP, "never anchored", at: NEVER.ticks(3));
    esatto::instant!(APP, "last");
    recorder.note("base", base);
    recorder.note("before", before);
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices, counters] = trace.query(["select name, ts, dur from slice", "select ts from counter"]);
    let of = |name: &str| {
        slices.iter().find(|row| row.text("name") == name).unwrap_or_else(|| panic!("{name} of {slices:?}"))
    };
    let fact = |name: &str| trace.fact(name).parse::<i64>().expect("a number");
    let after_base = |name: &str| of(name).int("ts") - fact("base");
    assert_eq!(after_base("600"), 1300);
    assert_eq!(after_base("799"), 1897, "by the anchor before it");
    assert_eq!(after_base("810"), 2030, "by the new one");
    assert_eq!((after_base("shared"), after_base("elsewhere")), (7000, 8000));
    assert_eq!((after_base("trace clock"), of("trace clock").int("dur")), (50_000, 1000));
    assert_eq!(counters[0].int("ts") - fact("base"), 60_000);
    // Clocks are read one after the other, and the service compares them now and then.
    for name in ["instant", "system"] {
        let ago = fact("before") - of(name).int("ts");
        assert!((4_000_000..1_000_000_000).contains(&ago), "{name}: {ago} ns ago");
    }
    assert!(of("now").int("ts") <= of("never anchored").int("ts"));
    assert!(of("never anchored").int("ts") <= of("last").int("ts"));

    let packets = trace.packets();
    for packets in sequences(&packets) {
        assert_eq!(packets[0].sequence_flags(), Some(1), "the sequence begins as always");
        let default = packets[0].trace_packet_defaults().and_then(|d| d.timestamp_clock_id()).expect("a default clock");
        for packet in packets.iter().filter(|packet| packet.timestamp_clock_id().is_some()) {
            let clock = packet.timestamp_clock_id().unwrap();
            assert!(clock != default && clock != 64 && clock != 65 || clock == 6, "{clock}");
        }
    }
}
