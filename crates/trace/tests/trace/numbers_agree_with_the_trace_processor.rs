//! The expected numbers are those of the official trace processor (v52) for the same files.

use std::collections::BTreeMap;

use esatto_trace::Summary;

use crate::common::official;

struct Expected {
    name: &'static str,
    packets: u64,
    compressed: u64,
    types: &'static [(&'static str, u64)],
    slices: u64,
    instants: u64,
    by_name: &'static [(&'static str, u64)],
    tracks_with_slices: usize,
    tracks: usize,
    counter_values: u64,
    counters: usize,
    /// Without the idle processes and threads.
    processes: usize,
    threads: usize,
    flows: u64,
    /// Without those of tracks and processes.
    distinct_arguments: u64,
    bounds: (i64, i64),
    skipped: u64,
}

const TRACES: [Expected; 5] = [
    Expected {
        name: "track-events",
        packets: 3034,
        compressed: 0,
        types: &[("track_event", 3003), ("track_descriptor", 12), ("process_tree", 1), ("clock_snapshot", 6)],
        slices: 1503,
        instants: 303,
        by_name: &[("frame", 300), ("draw", 300), ("details", 300), ("tick", 300), ("upload", 300), ("done", 3)],
        tracks_with_slices: 5,
        tracks: 7,
        counter_values: 300,
        counters: 1,
        processes: 5,
        threads: 11,
        flows: 300,
        distinct_arguments: 600,
        bounds: (2_230_960_794_179, 2_231_169_735_266),
        skipped: 0,
    },
    Expected {
        name: "process-and-sys-stats",
        packets: 33,
        compressed: 0,
        types: &[("sys_stats", 11), ("process_stats", 6), ("process_tree", 1), ("clock_snapshot", 3)],
        slices: 0,
        instants: 0,
        by_name: &[],
        tracks_with_slices: 0,
        tracks: 57,
        counter_values: 442,
        counters: 57,
        processes: 4,
        threads: 6,
        flows: 0,
        distinct_arguments: 0,
        bounds: (2_232_672_732_140, 2_235_000_348_840),
        skipped: 0,
    },
    Expected {
        name: "ring-buffer-wrapped",
        packets: 9404,
        compressed: 0,
        types: &[("track_event", 9379), ("track_descriptor", 8), ("clock_snapshot", 5)],
        slices: 3072,
        instants: 769,
        by_name: &[("frame", 767), ("draw", 767), ("tick", 767), ("upload", 769), ("done", 2)],
        tracks_with_slices: 4,
        tracks: 6,
        counter_values: 767,
        counters: 1,
        processes: 1,
        threads: 3,
        flows: 767,
        distinct_arguments: 2328,
        bounds: (2_237_000_890_366, 2_237_140_493_206),
        skipped: 3233,
    },
    Expected {
        name: "deflate",
        packets: 10_027,
        compressed: 10,
        types: &[("track_event", 10_002), ("track_descriptor", 8), ("clock_snapshot", 5)],
        slices: 5002,
        instants: 1002,
        by_name: &[("frame", 1000), ("draw", 1000), ("details", 1000), ("tick", 1000), ("upload", 1000), ("done", 2)],
        tracks_with_slices: 3,
        tracks: 5,
        counter_values: 1000,
        counters: 1,
        processes: 1,
        threads: 3,
        flows: 1000,
        distinct_arguments: 3000,
        bounds: (2_238_701_714_376, 2_238_983_241_281),
        skipped: 0,
    },
    Expected {
        name: "long-two-buffers",
        packets: 8050,
        compressed: 0,
        types: &[("track_event", 8003), ("track_descriptor", 12), ("process_tree", 1), ("process_stats", 4)],
        slices: 4003,
        instants: 1003,
        by_name: &[("frame", 1000), ("draw", 1000), ("tick", 1000), ("upload", 1000), ("done", 3)],
        tracks_with_slices: 5,
        tracks: 63,
        counter_values: 1198,
        counters: 56,
        processes: 6,
        threads: 13,
        flows: 1000,
        distinct_arguments: 2400,
        bounds: (2_240_417_255_134, 2_243_001_081_594),
        skipped: 0,
    },
];

#[test]
fn on_all_five_traces() {
    for expected in &TRACES {
        let name = expected.name;
        let summary = Summary::read(&official(name)[..]);
        assert!(summary.errors.is_empty(), "{name}: {:?}", summary.errors);
        assert_eq!(summary.packets, expected.packets, "{name}");
        assert_eq!(summary.compressed_packets, expected.compressed, "{name}");
        for (kind, packets) in expected.types {
            assert_eq!(summary.packets_by_type[*kind].packets, *packets, "{name} {kind}");
        }
        assert_eq!(summary.slices.count, expected.slices, "{name}");
        assert_eq!(summary.slices.instants, expected.instants, "{name}");
        assert_eq!(summary.slices.unfinished, 0, "{name}");
        let by_name: BTreeMap<&str, u64> =
            summary.slices.by_name.iter().map(|entry| (entry.name.as_deref().unwrap_or(""), entry.count)).collect();
        assert_eq!(by_name, expected.by_name.iter().copied().collect(), "{name}");
        assert_eq!(summary.tracks_with_slices(), expected.tracks_with_slices, "{name}");
        assert_eq!(summary.track_count(), expected.tracks, "{name}");
        assert_eq!(summary.counter_values(), expected.counter_values, "{name}");
        assert_eq!(summary.counters.len(), expected.counters, "{name}");
        assert_eq!(summary.processes.len(), expected.processes, "{name}");
        assert_eq!(summary.thread_count(), expected.threads, "{name}");
        assert_eq!(summary.flows, expected.flows, "{name}");
        assert_eq!(summary.distinct_arguments, expected.distinct_arguments, "{name}");
        assert_eq!(summary.bounds_ns, Some(expected.bounds), "{name}");
        assert_eq!(summary.skipped_packets, expected.skipped, "{name}");
        assert_eq!(summary.interning_errors, 0, "{name}");
        assert!(summary.losses().iter().all(|loss| loss.expected), "{name}: {:?}", summary.losses());
        let unexpected = summary.problems.keys().find(|rule| **rule != "slice_ends_without_begin");
        assert_eq!(unexpected, None, "{name}");
    }
}

#[test]
fn packets_of_the_service_are_read() {
    for Expected { name, .. } in &TRACES {
        let summary = Summary::read(&official(name)[..]);
        let service = &summary.sequences[0];
        assert_eq!(service.id, 1, "{name}");
        let own = if *name == "long-two-buffers" { 27 } else { 15 };
        assert_eq!(service.packets, own, "{name}");
        assert!(summary.sequences.iter().all(|sequence| sequence.uid == Some(0)), "{name}");
        assert!(summary.sequences[1..].iter().all(|sequence| sequence.pid.is_some()), "{name}");
        let wrapped = *name == "ring-buffer-wrapped";
        assert!(summary.sequences[1..].iter().all(|sequence| sequence.begins != wrapped), "{name}");
        let system = summary.system.as_ref().expect("the service tells of the system");
        assert_eq!(system.service_version, "Perfetto v56.0 (N/A)", "{name}");
        assert_eq!(system.num_cpus, Some(2), "{name}");
        assert_eq!(summary.service_events[0].name, "tracing_started", "{name}");
        assert!(summary.config.is_some(), "{name}");
        assert_eq!(summary.trace_clock, 6, "{name}");
        assert_eq!(summary.clocks.len(), 7, "{name}");
    }
}

#[test]
fn losses_of_a_wrapped_buffer_are_reported() {
    let summary = Summary::read(&official("ring-buffer-wrapped")[..]);
    let buffer = &summary.stats.as_ref().expect("the service counts").buffers[0];
    assert_eq!(buffer["chunks_overwritten"], 362);
    assert_eq!(buffer["bytes_overwritten"], 1_482_752);
    assert_eq!(buffer["chunks_read"], 64);
    assert_eq!(buffer["bytes_written"], 1_744_896);
    let losses = summary.losses();
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].what.as_str(), losses[0].number, losses[0].expected), ("chunks_overwritten", 362, true));
}
