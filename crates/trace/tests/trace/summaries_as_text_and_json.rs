use esatto_trace::Summary;

use crate::common::{Maker, official};

#[test]
fn the_text_has_the_numbers_and_the_names() {
    let summary =
        Summary::read(&official("track-events")[..]).with_config_text(|bytes| format!("{} bytes", bytes.len()));
    let text = summary.to_string();
    for expected in [
        "Packets   3034 (89.5 KiB) in 5 sequences\n",
        "Duration  208.941 ms\n",
        "Contents  5 processes, 11 threads, 1503 slices (303 of them instants), 300 counter values, 300 flows, 1800 annotations\n",
        "UUID      560f7350-a59c-0228-f7b2-810c88a621a9\n",
        "Service   Perfetto v56.0 (N/A)\n",
        "  track_event                3003  89197\n",
        "        17    worker-0            401\n",
        "  frame    thread    300         0  622.634 ms  2.013 ms   4.117 ms\n",
        "  upload   custom    300",
        "  thread                10 official-producer  17 worker-0      1     401       0\n",
        "Tracks (7, 5 with slices)\n",
        "  queue depth  process 10     300    0  209     9\n",
        "   6  BOOTTIME                  6        2230958573475        2230960912819  trace clock\n",
        "Config\n  95 bytes\n",
        "Losses    none\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "no blanks at the ends of lines");
}

#[test]
fn the_text_of_a_torn_file_begins_with_the_error() {
    let bytes = official("track-events");
    let summary = Summary::read(&bytes[..5000]);
    let text = summary.to_string();
    assert!(text.starts_with("ERROR     torn: the packet at byte 49"), "{text}");
    let readable = format!("\nReadable  {} packets, up to byte {}\n", summary.packets, summary.errors[0].offset());
    assert!(text.contains(&readable), "{text}");
    assert!(text.contains("worker-"), "what is before is shown");
    assert!(Summary::read(&b"{}"[..]).to_string().starts_with("ERROR     not a Perfetto trace: it looks like JSON"));
}

#[test]
fn json_has_stable_keys() {
    let json = Summary::read(&official("ring-buffer-wrapped")[..]).to_json();
    assert_eq!(json["packets"], 9404);
    assert_eq!(json["packets_by_type"]["track_event"]["packets"], 9379);
    assert_eq!(json["slices"]["count"], 3072);
    assert_eq!(json["slices"]["by_name"][0]["name"], "upload");
    assert_eq!(json["process_count"], 1);
    assert_eq!(json["processes"][0]["threads"][1]["name"], "worker-0");
    assert_eq!(json["flows"], 767);
    assert_eq!(json["losses"][0]["what"], "chunks_overwritten");
    assert_eq!(json["losses"][0]["expected"], true);
    assert_eq!(json["sequences"][1]["skipped_packets"], 1652);
    assert_eq!(json["duration_ns"], 139_602_840);
    assert_eq!(json["clocks"]["trace_clock"], 6);
    assert_eq!(json["clocks"]["list"][5]["name"], "BOOTTIME");
    assert_eq!(json["stats"]["buffers"][0]["chunks_read"], 64);
    assert_eq!(json["service_events"][0]["name"], "tracing_started");
    assert_eq!(json["errors"].as_array().map(Vec::len), Some(0));
    assert!(json["config_text"].is_null());
    let documented = [
        "annotations",
        "arguments",
        "categories",
        "clocks",
        "compressed_packets",
        "config_text",
        "counter_values",
        "counters",
        "data_source_problems",
        "distinct_arguments",
        "duration_ns",
        "early_ftrace_events",
        "end_ns",
        "errors",
        "first_packet_ns",
        "flows",
        "ftrace_events",
        "gzipped",
        "inflated_bytes",
        "interning_errors",
        "last_packet_ns",
        "losses",
        "machines",
        "more_errors",
        "packet_bytes",
        "packets",
        "packets_by_type",
        "parts",
        "problems",
        "process_count",
        "processes",
        "scheduling_gap_ns",
        "sequences",
        "service_events",
        "skipped_packets",
        "slices",
        "start_ns",
        "states",
        "stats",
        "system",
        "thread_count",
        "track_count",
        "tracks",
        "tracks_with_slices",
        "triggers",
        "unread_bytes",
        "uuid",
    ];
    let keys: Vec<_> = json.as_object().expect("is an object").keys().map(String::as_str).collect();
    assert_eq!(keys, documented);
}

/// A trace in which a program did not answer the last flush.
fn silent_program() -> Maker {
    Maker::default()
        .packet(|packet| {
            let mut event = packet.begin(SERVICE_EVENT);
            let mut slow = event.begin(LAST_FLUSH_SLOW_DATA_SOURCES);
            let mut source = slow.begin(1);
            source.string(1, "sleeper");
            source.string(2, "track_event");
        })
        .packet(|packet| packet.begin(TRACE_STATS).varint(FINAL_FLUSH_OUTCOME, 2))
}

const SERVICE_EVENT: u32 = 69;
const LAST_FLUSH_SLOW_DATA_SOURCES: u32 = 8;
const TRACE_STATS: u32 = 35;
const FINAL_FLUSH_OUTCOME: u32 = 15;

const TRACING_STARTED: u32 = 2;
const START_TIMES: u32 = 4001;

#[test]
fn the_missing_start_of_a_program_is_shown() {
    let started = |maker: Maker, ns: u64| {
        maker.packet(|packet| {
            packet.varint(8, ns);
            // The sequence of the service.
            packet.varint(10, 1);
            packet.begin(SERVICE_EVENT).varint(TRACING_STARTED, 1);
        })
    };
    let program = |maker: Maker, times: [u64; 3]| {
        maker.packet(|packet| {
            packet.varint(8, 40_000_000);
            packet.varint(79, 7);
            let mut track = packet.begin(60);
            track.varint(1, 1);
            track.begin(3).int(1, 7);
            let mut start = track.begin(START_TIMES);
            for (field, ns) in (1..).zip(times) {
                start.varint(field, ns);
            }
        })
    };
    let trace = |times| program(started(Maker::default(), 10_000_000), times).summary();

    let late = trace([12_000_000, 13_000_000, 31_000_000]);
    assert_eq!(late.processes[0].missing_ns, Some(18_000_000));
    let row = "7         2.000 ms  21.000 ms     30.000 ms  its first 18.000 ms are missing\n";
    assert!(late.to_string().contains(row), "{late}");
    assert_eq!(late.to_json()["processes"][0]["enabled_ns"], 31_000_000);

    let waited = trace([12_000_000, 32_000_000, 31_000_000]);
    assert_eq!(waited.processes[0].missing_ns, Some(0));
    assert!(!waited.to_string().contains("are missing"), "{waited}");
    let earlier = trace([1_000_000, 2_000_000, 11_000_000]);
    assert_eq!(earlier.processes[0].missing_ns, None);
    assert!(earlier.to_string().contains("7           before  1.000 ms     30.000 ms\n"), "{earlier}");
    let absurd = trace([u64::MAX, u64::MAX, u64::MAX]);
    assert_eq!((absurd.processes[0].connected_ns, absurd.processes[0].missing_ns), (None, None));
}

#[test]
fn programs_that_did_not_answer_are_named() {
    let summary = silent_program().summary();
    let text = summary.to_string();
    assert!(text.contains("last_flush_slow_data_sources\n        track_event of sleeper\n"), "{text}");
    assert!(text.contains("final_flush_failed       1  no answer from sleeper\n"), "{text}");
    let json = summary.to_json();
    assert_eq!(json["service_events"][0]["data_sources"][0]["producer"], "sleeper");
}

/// The unanswered flush comes after more events than the table has rows.
#[test]
fn failures_are_never_cut_from_a_long_recording() {
    let mut trace = Maker::default();
    for time in 1..=100 {
        trace = trace.packet(|packet| {
            packet.varint(8, time * 1_000_000);
            packet.begin(SERVICE_EVENT).varint(READ_COMPLETED, 1);
        });
    }
    for _ in 0..50 {
        trace = trace.packet(|packet| packet.begin(SERVICE_EVENT).varint(FLUSH_STARTED, 1));
    }
    for event in
        [LAST_FLUSH_SLOW_DATA_SOURCES, REFUSED_DATA_SOURCES, SLOW_STOPPING_DATA_SOURCES, UNREACHED_DATA_SOURCES]
    {
        trace = trace.packet(|packet| {
            let mut packet = packet.begin(SERVICE_EVENT);
            let mut named = packet.begin(event);
            let mut source = named.begin(1);
            source.string(1, "sleeper");
            source.string(2, "track_event");
        });
    }
    let summary = trace.packet(|packet| packet.begin(SERVICE_EVENT).varint(RELAY_DISCONNECTED, 7)).summary();
    let text = summary.to_string();
    assert_eq!(text.matches("read_tracing_buffers_completed").count(), 1, "{text}");
    assert!(text.contains("read_tracing_buffers_completed, 100 times until here\n"), "{text}");
    for event in
        ["last_flush_slow_data_sources", "refused_data_sources", "slow_stopping_data_sources", "unreached_data_sources"]
    {
        let rows: Vec<_> = text.lines().skip_while(|line| !line.ends_with(event)).take(2).map(str::trim).collect();
        assert_eq!(rows, [event, "track_event of sleeper"], "{text}");
    }
    assert!(text.contains("relay_disconnected of machine 7\n  … and 27 more\n"), "{text}");
    let cells = |line: &str| {
        line.split("  ").filter(|cell| !cell.is_empty()).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    for row in [
        ["service", "stop_failed", "1", "no answer from sleeper"],
        ["program sleeper", "unreached_data_sources", "1", "it ended before the recording reached it"],
        ["machine 7", "relay_disconnected", "1", "the last events of its programs may be missing"],
    ] {
        assert!(rows.iter().any(|cells| *cells == row), "{text}");
    }
    assert_eq!(summary.to_json()["losses"][0]["what"], "stop_failed");
}

const FLUSH_STARTED: u32 = 9;
const REFUSED_DATA_SOURCES: u32 = 4001;
const SLOW_STOPPING_DATA_SOURCES: u32 = 4002;
const RELAY_DISCONNECTED: u32 = 4004;
const UNREACHED_DATA_SOURCES: u32 = 4007;

const TRACING_DISABLED: u32 = 5;
const READ_COMPLETED: u32 = 4;

/// Adds an event of the service.
fn service_event(maker: Maker, event: u32) -> Maker {
    maker.packet(|packet| {
        packet.varint(10, 1);
        packet.begin(SERVICE_EVENT).varint(event, 1);
    })
}

/// Adds an event of a program, as a service stores it.
fn program_event(maker: Maker) -> Maker {
    maker.packet(|packet| {
        packet.varint(3, 1000);
        packet.varint(8, 5);
    })
}

#[test]
fn a_missing_end_is_told_if_it_can_be_known() {
    const START: u32 = TRACING_STARTED;
    const END: u32 = TRACING_DISABLED;
    const READ: u32 = READ_COMPLETED;
    /// Stands for a packet of a program.
    const DATA: u32 = 0;
    let trace = |steps: &[u32]| {
        let add = |maker, &step| if step == DATA { program_event(maker) } else { service_event(maker, step) };
        steps.iter().fold(Maker::default(), add)
    };
    let whole: [&[u32]; 6] = [
        &[START, END, DATA, READ],
        &[START, DATA, READ, DATA, READ, END, DATA, READ],
        // Symbols may be appended.
        &[START, END, DATA, READ, DATA],
        // A program has read the running session once.
        &[START, DATA, READ],
        // A clone of a session that was read before.
        &[END, DATA, READ],
        // The service writes no events, or its version knows none of these.
        &[DATA, DATA],
    ];
    for steps in whole {
        let trace = trace(steps);
        let summary = trace.summary();
        assert!(!summary.lacks_end() && summary.losses().is_empty(), "{steps:?}\n{summary}");
        let torn = Summary::read(&trace.0[..trace.0.len() - 1]);
        assert!(torn.lacks_end() && torn.to_string().contains("\nEnd       missing: "), "{torn}");
    }
    let cut: [&[u32]; 4] =
        [&[START, DATA], &[START, DATA, READ, DATA], &[START, DATA, READ, DATA, READ], &[START, DATA, READ, END, DATA]];
    for steps in cut {
        let summary = trace(steps).summary();
        let text = summary.to_string();
        assert!(text.contains("\nEnd       missing: ") && !text.contains("Losses    none"), "{steps:?}\n{text}");
        assert_eq!(summary.to_json()["losses"][0]["what"], "end_missing");
    }
    // After this error, the rest of the file is unknown.
    let mut garbage = trace(&[START, DATA]);
    garbage.0.push(0xff);
    assert!(!garbage.summary().lacks_end());
}

#[test]
fn whole_traces_of_official_services_have_their_end() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let captures = std::fs::read_dir(folder.join("captures")).unwrap().map(|entry| entry.unwrap().path());
    let captures = captures.map(|folder| folder.join("trace.pftrace")).filter(|file| file.exists());
    let traces = std::fs::read_dir(folder.join("traces")).unwrap().map(|entry| entry.unwrap().path());
    let traces = traces.filter(|file| file.extension().is_some_and(|extension| extension == "pftrace"));
    let mut seen = 0;
    for file in captures.chain(traces) {
        let bytes = std::fs::read(&file).unwrap();
        let summary = Summary::read(&bytes[..]);
        assert!(!summary.lacks_end(), "{}", file.display());
        seen += 1;
        // Cut within the last reading.
        let offsets: Vec<u64> = esatto_trace::packets(&bytes).flatten().map(|packet| packet.place.offset).collect();
        let cut = &bytes[..usize::try_from(offsets[offsets.len() - 3]).unwrap()];
        let tells = summary.service_events.iter().any(|event| event.name == "read_tracing_buffers_completed");
        assert_eq!(Summary::read(cut).lacks_end(), tells, "{}", file.display());
    }
    assert!(seen > 30, "{seen} traces");
}
