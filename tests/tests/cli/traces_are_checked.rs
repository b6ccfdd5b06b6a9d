//! `esatto check` says whether traces are sound, what they lost, and what would have prevented it.

use esatto_protozero::HeapBuffer;
use esatto_schema::TracePacketReader;
use esatto_schema::track_event::Type;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, esatto_bin};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/official-v56-{name}.pftrace"))
}

fn check(files: &[&Path], options: &[&str]) -> Output {
    Command::new(esatto_bin()).arg("check").args(options).args(files).output().expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_sound_one() {
    let output = check(&[&trace("track-events")], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("track-events.pftrace: sound. "), "{}", said(&output));
}

#[test]
fn one_that_lost_data() {
    let output = check(&[&trace("track-events"), &trace("ring-buffer-wrapped")], &[]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("ring-buffer-wrapped.pftrace: data is missing") && text.contains("  lost: "), "{text}");
    assert!(text.contains("size_kb"), "it names the line of the config that helps: {text}");
}

/// A buffer of the size that `check` advises then has everything.
#[test]
fn one_of_a_full_buffer_that_discards() {
    let harness = Harness::new();
    let workload = Workload { threads: 1, rounds: 5000, pause_us: 0 };
    let record = |kb: u32| {
        let config = format!(
            "buffers {{ size_kb: {kb} fill_policy: DISCARD }}
            data_sources {{ config {{ name: \"track_event\" track_event_config {{ enabled_categories: \"*\" }} }} }}"
        );
        let config = harness.write("config", config);
        let application = harness.application_command(Implementation::Ours, workload);
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-c"]).arg(config).arg("-o").arg(harness.path("trace")).args(["--force", "--"]);
        command.arg(application.get_program()).args(application.get_args());
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&check(&[&harness.path("trace")], &[]))
    };
    let text = record(64);
    let advice = text.split_once("Use `buffers { size_kb: ").unwrap_or_else(|| panic!("{text}")).1;
    let advised: u32 = advice.split_once(" }`").expect("a size").0.parse().expect("a number");
    assert!(advised >= 1024, "{text}");
    let text = record(advised);
    assert!(!text.contains("chunks_discarded"), "{advised} KiB: {text}");
}

#[test]
fn a_damaged_one() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    bytes.truncate(bytes.len() - 7);
    harness.write("t.pftrace", &bytes);
    let output = check(&[&harness.path("t.pftrace")], &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json[0]["is_sound"], false);
    assert_eq!(json[0]["findings"][0]["level"], "damaged");
}

/// Writes a trace with garbage in its middle. Returns the position of the garbage, and the bytes
/// after it.
fn damaged_in_the_middle(harness: &Harness) -> (usize, usize) {
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    let packets = esatto_trace::packets(&bytes).collect::<Result<Vec<_>, _>>().expect("whole packets");
    let at = usize::try_from(packets[packets.len() / 2].place.offset).expect("a file of today");
    bytes[at] = 0xff;
    harness.write("t.pftrace", &bytes);
    (at, bytes.len() - at - 1)
}

#[test]
fn one_of_which_a_part_is_not_read() {
    let harness = Harness::new();
    let (at, unread) = damaged_in_the_middle(&harness);
    let text = said(&check(&[&harness.path("t.pftrace")], &[]));
    let extent = format!("Everything before it is shown. {unread} bytes after it are not read\n");
    assert!(text.contains(&format!("garbage at byte {at}: ")) && text.contains(&extent), "{text}");
    let info = Command::new(esatto_bin()).arg("info").arg(harness.path("t.pftrace")).output().expect("it runs");
    let extent = format!(" packets, up to byte {at}; {unread} bytes after it are not read\n");
    assert!(said(&info).contains(&extent), "{}", said(&info));

    harness.write("t.txt", "a text, no trace");
    let text = said(&check(&[&harness.path("t.txt")], &[]));
    assert!(text.contains("not a Perfetto trace") && !text.contains("is shown"), "{text}");
}

#[test]
fn one_that_begins_within_slices() {
    let harness = Harness::new();
    let mut packets = esatto_trace::packets(&std::fs::read(trace("track-events")).expect("a trace")[..])
        .collect::<Result<Vec<_>, _>>()
        .expect("whole packets");
    let begins = packets.iter().position(|packet| {
        let packet = TracePacketReader::new(&packet.bytes);
        let kind = packet.track_event().and_then(|event| event.r#type());
        kind == Some(Type::TYPE_SLICE_BEGIN) && packet.interned_data().is_none()
    });
    packets.remove(begins.expect("a slice"));
    let mut rest = HeapBuffer::new();
    for packet in packets {
        rest.message().bytes(1, &packet.bytes);
    }
    harness.write("t.pftrace", rest.as_slice());
    let output = check(&[&harness.path("t.pftrace")], &[]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("  note: 1 slice has no begin. They had begun before"), "{text}");
    assert!(!text.contains("warning"), "{text}");
}

/// As a program writes it that uses a track without events as the parent of another one.
#[test]
fn one_with_events_below_a_track_without_descriptor() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    let mut more = HeapBuffer::new();
    {
        let mut trace = more.message();
        {
            let mut packet = trace.begin(1);
            let mut track = packet.begin(60);
            track.varint(1, 5);
            track.bytes(2, b"queue");
            track.varint(5, 99);
        }
        for kind in [1, 2] {
            let mut packet = trace.begin(1);
            packet.varint(8, kind);
            packet.varint(10, 1);
            let mut event = packet.begin(11);
            event.varint(9, kind);
            event.varint(11, 5);
        }
    }
    bytes.extend_from_slice(more.as_slice());
    harness.write("t.pftrace", &bytes);
    let text = said(&check(&[&harness.path("t.pftrace")], &[]));
    let warning = "warning: 2 × events on tracks without ancestor. ";
    assert!(text.contains(warning) && text.contains("Each track above theirs needs an event of its own"), "{text}");
}

#[test]
fn one_that_is_not_there() {
    let output = check(&[Path::new("/nonexistent"), &trace("track-events")], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot read the trace /nonexistent"), "{}", said(&output));
    assert!(said(&output).contains("track-events.pftrace: sound. "), "the others are checked: {}", said(&output));
    let output = check(&[Path::new("/nonexistent"), &trace("track-events")], &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let verdicts: Vec<&str> =
        json.as_array().expect("a list").iter().filter_map(|one| one["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["cannot be read", "sound"]);
    let why = json[0]["findings"][0]["title"].as_str().expect("a reason");
    assert!(why.contains("No such file"), "{why}");
}
