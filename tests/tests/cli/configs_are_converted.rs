//! `esatto config convert`: text, binary and JSON, in both directions.

use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use esatto_tests::{Harness, esatto_bin};
use std::process::Output;

const TEXT: &str = "\
buffers {
  size_kb: 64
  fill_policy: RING_BUFFER
}
data_sources {
  config {
    name: \"track_event\"
    target_buffer: 0
    track_event_config {
      enabled_categories: \"a\\\"b\"
      enabled_categories: \"c\"
    }
  }
}
max_file_size_bytes: 18446744073709551615
trace_uuid_msb: -1
trigger_config {
  triggers {
    name: \"x\"
    skip_probability: 0.25
  }
}
";

fn convert(harness: &Harness, args: &[&str]) -> Output {
    let mut command = harness.command(esatto_bin());
    command.args(["config", "convert"]).args(args).output().expect("it runs")
}

fn converted(harness: &Harness, args: &[&str]) -> Vec<u8> {
    let output = convert(harness, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{args:?}: {said}");
    output.stdout
}

fn decoded(harness: &Harness, name: &str) -> TraceConfig {
    TraceConfig::decode(&std::fs::read(harness.path(name)).expect("a file")).expect("a config")
}

#[test]
fn each_form_leads_to_each_other_one() {
    let harness = Harness::new();
    harness.write("a.cfg", TEXT);
    assert_eq!(converted(&harness, &["a.cfg", "-o", "b.pb"]), b"");
    converted(&harness, &["b.pb", "-o", "c.json"]);
    converted(&harness, &["c.json", "-o", "d.pb"]);
    converted(&harness, &["a.cfg", "-o", "e.json"]);
    assert_eq!(decoded(&harness, "b.pb"), decoded(&harness, "d.pb"));
    let read = |name: &str| std::fs::read_to_string(harness.path(name)).expect("text");
    assert_eq!(read("c.json"), read("e.json"));
    assert_eq!(String::from_utf8_lossy(&converted(&harness, &["b.pb"])), TEXT);
    let from_json = converted(&harness, &["c.json", "--to", "text"]);
    harness.write("f.cfg", from_json);
    converted(&harness, &["f.cfg", "-o", "g.bin"]);
    assert_eq!(decoded(&harness, "g.bin"), decoded(&harness, "b.pb"));
}

#[test]
fn json_is_the_mapping_of_protobuf() {
    let harness = Harness::new();
    harness.write("a.cfg", TEXT);
    let json: serde_json::Value =
        serde_json::from_slice(&converted(&harness, &["a.cfg", "--to", "json"])).expect("JSON");
    let expected = serde_json::json!({
        "buffers": [{ "sizeKb": 64, "fillPolicy": "RING_BUFFER" }],
        "dataSources": [{ "config": {
            "name": "track_event",
            "targetBuffer": 0,
            "trackEventConfig": { "enabledCategories": ["a\"b", "c"] },
        } }],
        "maxFileSizeBytes": "18446744073709551615",
        "traceUuidMsb": "-1",
        "triggerConfig": { "triggers": [{ "name": "x", "skipProbability": 0.25 }] },
    });
    assert_eq!(json, expected);
}

#[test]
fn both_spellings_of_names_and_numbers_are_read() {
    let harness = Harness::new();
    harness.write(
        "a.json",
        r#"{"buffers":[{"size_kb":"64","fill_policy":1}],"max_file_size_bytes":7,"duration_ms":null}"#,
    );
    let text = converted(&harness, &["a.json"]);
    let expected = "buffers {\n  size_kb: 64\n  fill_policy: RING_BUFFER\n}\nmax_file_size_bytes: 7\n";
    assert_eq!(String::from_utf8_lossy(&text), expected);
}

#[test]
fn fields_that_this_version_does_not_know_are_kept_or_told() {
    let harness = Harness::new();
    // Field 3000 of a later version.
    harness.write("a.pb", [0x0a, 2, 8, 64, 0xc0, 0xbb, 1, 7]);
    converted(&harness, &["a.pb", "--from", "binary", "-o", "b.pb"]);
    let read = |name: &str| std::fs::read(harness.path(name)).expect("a file");
    assert_eq!(read("b.pb"), read("a.pb"));
    let text = String::from_utf8(converted(&harness, &["a.pb"])).expect("text");
    assert!(text.ends_with("# 3000: 7\n"), "{text}");
    let output = convert(&harness, &["a.pb", "--to", "json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "esatto: 1 field of a.pb that this version does not know cannot be in JSON.\n");
}

#[test]
fn mistakes_of_the_input_leave_the_output_alone() {
    let harness = Harness::new();
    harness.write("a.cfg", "buffers { size_mb: 1 }\n");
    harness.write("b.json", "as it was");
    let output = convert(&harness, &["a.cfg", "-o", "b.json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("esatto: the config a.cfg has 1 mistake:\na.cfg:1:11 error: "), "{said}");
    assert_eq!(std::fs::read(harness.path("b.json")).expect("a file"), b"as it was");
    harness.write("a.cfg", TEXT);
    let output = convert(&harness, &["a.cfg", "-o", "no/such/folder.json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "esatto: cannot write no/such/folder.json: No such file or directory (os error 2)\n");
}

#[test]
fn a_converted_config_records_like_its_text() {
    let harness = Harness::new();
    harness
        .write("a.cfg", "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } } duration_ms: 9000");
    converted(&harness, &["a.cfg", "-o", "a.pb"]);
    let mut command = harness.command(esatto_bin());
    let output = command.args(["record", "-c", "a.pb", "-o", "trace", "--", "true"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(harness.path("trace").exists());
}
