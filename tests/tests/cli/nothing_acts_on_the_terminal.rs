//! Names in a trace, in a config or of a file are shown, not obeyed: escape sequences and controls
//! of direction.

use esatto_protozero::HeapBuffer;
use esatto_schema::{TracePacketWriter, track_event};
use esatto_tests::{Harness, esatto_bin};
use std::process::Output;

/// Clears the screen, sets the title, reverses the text, forges a line.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{1b}]0;t\u{7}\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}\nerror: c\r\u{7f}";

fn esatto(harness: &Harness, args: &[&str]) -> Output {
    harness.command(esatto_bin()).args(args).output().expect("it runs")
}

/// Asserts that the output has no character that controls a terminal.
fn assert_harmless(output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        let acting = text.chars().find(|c| *c != '\n' && esatto_trace::escape::is_unsafe(*c));
        assert!(acting.is_none(), "{:?} in {text:?}", acting.expect("one"));
        assert!(!text.lines().any(|line| line.trim_start().starts_with("error: c")), "a forged line in\n{text}");
    }
}

/// A trace in which everything that can have a name has a hostile one.
fn hostile_trace() -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    let mut trace = buffer.message();
    let mut packet = |fill: &dyn Fn(&mut TracePacketWriter<'_>)| {
        let mut packet = TracePacketWriter::from(trace.begin(1));
        packet.timestamp(1000).trusted_packet_sequence_id(2);
        fill(&mut packet);
    };
    packet(&|packet| {
        let mut track = packet.track_descriptor();
        track.uuid(1).name(HOSTILE);
        let mut process = track.process();
        process.pid(7).process_name(HOSTILE);
    });
    packet(&|packet| {
        packet.track_descriptor().uuid(2).name(HOSTILE).counter();
    });
    packet(&|packet| {
        packet
            .track_event()
            .r#type(track_event::Type::TYPE_SLICE_BEGIN)
            .track_uuid(1)
            .name(HOSTILE)
            .categories(HOSTILE);
    });
    packet(&|packet| {
        packet.track_event().r#type(track_event::Type::TYPE_COUNTER).track_uuid(2).counter_value(1);
    });
    packet(&|packet| {
        let mut system = packet.system_info();
        system.tracing_service_version(HOSTILE);
        let mut uname = system.utsname();
        uname.sysname(HOSTILE).release(HOSTILE).machine(HOSTILE);
    });
    packet(&|packet| {
        packet.trigger().trigger_name(HOSTILE);
    });
    packet(&|packet| {
        packet.trace_config().unique_session_name(HOSTILE);
    });
    drop(trace);
    buffer.to_vec()
}

#[test]
fn of_names_in_a_trace() {
    let harness = Harness::new();
    harness.write("trace", hostile_trace());
    let output = esatto(&harness, &["info", "trace"]);
    assert!(output.status.success());
    assert_harmless(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains(r"a\u{1b}[2J\u{9b}31m"));
}

#[test]
fn of_names_in_json() {
    let harness = Harness::new();
    harness.write("trace", hostile_trace());
    let output = esatto(&harness, &["info", "--json", "trace"]);
    assert_harmless(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["processes"][0]["name"], HOSTILE);
}

#[test]
fn of_names_of_files() {
    let harness = Harness::new();
    assert_harmless(&esatto(&harness, &["info", HOSTILE]));
    harness.write(HOSTILE, b"\x0a\x05torn");
    assert_harmless(&esatto(&harness, &["info", HOSTILE]));
    assert_harmless(&esatto(&harness, &["record", "-o", HOSTILE, "--", "true"]));
    assert_harmless(&esatto(&harness, &["record", "-o", "trace", "-c", HOSTILE, "--", "true"]));
    assert_harmless(&esatto(&harness, &["record", "-o", "trace", "--", HOSTILE]));
}

#[test]
fn of_mistakes_in_a_config() {
    let harness = Harness::new();
    harness.write("my.cfg", "buffers { \u{1b}[2J: 1 }\nbogus: \"\u{9b}31m\u{202e}\"\n");
    assert_harmless(&esatto(&harness, &["record", "-o", "trace", "-c", "my.cfg", "--", "true"]));
}

#[test]
fn of_what_a_service_says() {
    let harness = Harness::new();
    // The service quotes it when it refuses the config.
    harness.write(
        "my.cfg",
        "buffers { size_kb: 64 }\ndata_sources { config { name: \"x\" } }\ntrigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 1000 triggers { \
         name: \"x\" producer_name_regex: \"(\\033[2J\\342\\200\\256\" } }\ndata_sources { config { name: \"x\" } \
         producer_name_regex_filter: \"(\\033[2J\\342\\200\\256\" }\n",
    );
    let output = esatto(&harness, &["record", "-o", "trace", "-c", "my.cfg", "--", "true"]);
    assert!(!output.status.success());
    assert_harmless(&output);
}
