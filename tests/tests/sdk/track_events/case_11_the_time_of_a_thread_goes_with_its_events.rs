use esatto::Track;
use esatto_tests::sdk::{Recorder, Trace};

use super::{all, sequences, text};

esatto::categories! { static APP = "app"; }
static TRACK: Track = Track::with_name("lane", 0);

mod each_event {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1, 0), super::check);
}

mod in_microseconds {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1000, 0), super::check);
}

mod subsampled {
    esatto_tests::scenario!(|recorder| super::record(recorder, 1, 1_000_000_000_000), super::check_subsampled);
}

fn record(recorder: &Recorder, unit_ns: u64, subsampling_ns: u64) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| {
        events.enable_thread_time_sampling = Some(true);
        events.thread_time_subsampling_ns = Some(subsampling_ns);
        events.timestamp_unit_multiplier = Some(unit_ns);
    }));
    let cpu_ns = || {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec * 1_000_000_000 + t.tv_nsec
    };
    for round in 0..20 {
        let before = cpu_ns();
        let _slice = esatto::slice!(APP, "work", before = before, round = round);
        std::hint::black_box((0..100_000_u64).map(|n| n * n).sum::<u64>());
        esatto::instant!(APP, track: &TRACK, "elsewhere");
        esatto::instant!(APP, track: &Track::of_this_thread(), "named");
    }
    recorder.note("after", cpu_ns());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [times, slices] = trace.query([
        "select value, utid from counter join thread_counter_track t on track_id = t.id where name = 'thread_time' order by ts, counter.id",
        "select extract_arg(arg_set_id, 'debug.before') as before from slice where name = 'work' order by ts",
    ]);
    // 20 begins and 20 ends; those that name a track have none.
    assert_eq!(times.len(), 40);
    assert!(times.windows(2).all(|pair| pair[0].real("value") <= pair[1].real("value")));
    let after: f64 = trace.fact("after").parse().expect("a number");
    let mut begins = times.iter().step_by(2);
    for slice in &slices {
        // The remainders of units do not get lost.
        assert!(begins.next().expect("one for each").real("value") > slice.int("before") as f64 - 1000.0);
    }
    assert!(times[39].real("value") <= after);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let defaults = packets[0].trace_packet_defaults().and_then(|d| d.track_event_defaults()).expect("defaults");
    let counter = packets[3].track_descriptor().expect("the fourth packet describes the counter");
    assert_eq!(counter.parent_uuid(), defaults.track_uuid());
    assert_eq!(defaults.extra_counter_track_uuids().collect::<Vec<_>>(), [counter.uuid().unwrap()]);
    assert_eq!(text(counter.static_name()), "thread_time");
    let counter = counter.counter().expect("is a counter");
    assert_eq!((counter.r#type().map(|t| t.0), counter.is_incremental()), (Some(1), Some(true)));
}

fn check_subsampled(trace: &Trace) {
    let packets = trace.packets();
    let values: Vec<_> = sequences(&packets)
        .into_iter()
        .flatten()
        .filter_map(|packet| packet.track_event())
        .flat_map(|event| event.extra_counter_values().collect::<Vec<_>>())
        .collect();
    assert_eq!(values.len(), 40);
    assert!(values[0] > 0 && values[1..].iter().all(|&v| v == 0), "the first is sampled: {values:?}");
}
