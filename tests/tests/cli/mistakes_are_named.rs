//! A mistake is reported in one line, with its reason and its place. Nothing is recorded.

use esatto_tests::{Harness, Implementation, Signal, esatto_bin};
use std::path::Path;
use std::process::{Command, Output};

fn esatto(harness: &Harness, args: &[&str]) -> Output {
    let mut command: Command = harness.command(esatto_bin());
    command.args(args).output().expect("it runs")
}

/// Runs a command that must fail, and returns its stderr.
fn failure(harness: &Harness, args: &[&str]) -> String {
    let output = esatto(harness, args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "esatto {args:?} succeeds:\n{stderr}");
    assert!(output.status.code().is_some_and(|code| code < 100), "{:?}\n{stderr}", output.status);
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

const TRACK_EVENTS: &str = "data_sources { config { name: \"track_event\" } }";

/// Records `true` with a config that must be refused.
fn refused(config: &str) -> String {
    let harness = Harness::new();
    harness.write("my.cfg", config);
    let stderr = failure(&harness, &["record", "-o", "trace", "-c", "my.cfg", "--", "touch", "ran"]);
    assert!(!Path::new(&harness.path("ran")).exists(), "the command has run:\n{stderr}");
    stderr
}

#[test]
fn an_unknown_field_of_a_config_with_its_place() {
    let stderr = refused("buffers {\n  size_kb: 1024\n  size_mb: 1\n}\n");
    assert!(stderr.contains("my.cfg:3:3 error: "), "{stderr}");
    assert!(stderr.contains("No field named \"size_mb\" in proto BufferConfig"), "{stderr}");
    assert!(stderr.contains("\n  size_mb: 1\n  ^~~~~~~"), "{stderr}");
}

#[test]
fn all_mistakes_of_a_config_at_once() {
    let stderr =
        refused("buffers { size_kb: \"x\" }\nbogus: 1\nduration_ms: true\nbuffers { fill_policy: SOMETIMES }\n");
    for line in ["my.cfg:1:", "my.cfg:2:1 ", "my.cfg:3:", "my.cfg:4:"] {
        assert!(stderr.contains(line), "{line} is not in\n{stderr}");
    }
    assert!(stderr.starts_with("esatto: the config has 4 mistakes:\nmy.cfg:1:"), "{stderr}");
}

#[test]
fn a_negative_number_of_a_field_without_a_sign() {
    let stderr = refused("buffers { size_kb: -64 }\nflush_period_ms: -1\n");
    assert!(stderr.contains("my.cfg:1:20 error: ") && stderr.contains("my.cfg:2:18 error: "), "{stderr}");
    assert!(stderr.contains("-1 is out of range, allowed is 0 to 4294967295"), "{stderr}");
}

#[test]
fn a_buffer_that_the_config_does_not_have() {
    let config = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" target_buffer: 1 } }";
    let stderr = refused(config);
    assert!(stderr.ends_with("target_buffer is 1, the config has 1 buffer\n"), "{stderr}");
}

#[test]
fn a_config_that_ends_too_early() {
    let stderr = refused("buffers { size_kb: 1024\n");
    assert!(stderr.contains("my.cfg:"), "{stderr}");
}

#[test]
fn a_trace_in_the_place_of_a_config() {
    let harness = Harness::new();
    assert_eq!(esatto(&harness, &["record", "-o", "old.pftrace", "--", "true"]).status.code(), Some(3));
    // Longer than a config may be.
    let old = std::fs::read(harness.path("old.pftrace")).expect("a trace");
    harness.write("long.pftrace", old.repeat((17 << 20) / old.len()));
    for name in ["old.pftrace", "long.pftrace"] {
        let stderr = failure(&harness, &["record", "-c", name, "--", "touch", "ran"]);
        let line = format!(
            "esatto: cannot use the config {name}: it is a trace; -c takes a config, -o the trace; `esatto info {name}` \
             shows what the trace contains\n"
        );
        assert_eq!(stderr, line);
        assert!(!harness.path("ran").exists());
    }
}

#[test]
fn a_trace_whose_config_is_checked() {
    let harness = Harness::new();
    assert_eq!(esatto(&harness, &["record", "-o", "old.pftrace", "--", "true"]).status.code(), Some(3));
    let output = esatto(&harness, &["config", "check", "old.pftrace"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("it is a trace, no config") && said.contains("`esatto info old.pftrace`"), "{said}");
    assert!(said.ends_with("old.pftrace: 1 mistake\n"), "{said}");
}

#[test]
fn a_config_in_json_is_to_be_converted() {
    let harness = Harness::new();
    let config = r#" { "buffers": [{ "sizeKb": 64 }], "dataSources": [{ "config": { "name": "track_event" } }] }"#;
    harness.write("x.json", config);
    let said = failure(&harness, &["record", "-c", "x.json", "-o", "trace", "--", "true"]);
    assert!(said.contains("it is JSON") && said.contains("`esatto config convert x.json --to text "), "{said}");
    let args = ["config", "convert", "x.json", "--to", "text", "-o", "x.cfg"];
    assert!(esatto(&harness, &args).status.success(), "the advice works");
    assert_eq!(esatto(&harness, &["record", "-c", "x.cfg", "-o", "trace", "--", "true"]).status.code(), Some(3));
}

#[test]
fn a_config_in_the_place_of_a_trace() {
    let harness = Harness::new();
    harness.write("my.cfg", format!("buffers {{ size_kb: 64 }} {TRACK_EVENTS}"));
    // The same config, encoded.
    let encoded = [&[0x0a, 2, 8, 64, 0x12, 15, 0x0a, 13, 0x0a, 11], &b"track_event"[..]].concat();
    harness.write("encoded.cfg", encoded);
    for name in ["my.cfg", "encoded.cfg"] {
        let line = format!(
            "esatto: {name} is not a Perfetto trace: it is a recording config; `esatto record -c {name}` records with \
             it\n"
        );
        assert_eq!(failure(&harness, &["info", name]), line);
    }
}

#[test]
fn options_after_the_command() {
    let harness = Harness::new();
    let hint = "The command got -o x.pftrace as its own. Options of record come before the command.\n";
    for (args, is_told) in [
        (&["record", "false", "-o", "x.pftrace"][..], true),
        (&["record", "--", "false", "-o", "x.pftrace"], false),
        (&["record", "true", "-o", "x.pftrace"], false),
    ] {
        let output = esatto(&harness, args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.contains(hint), is_told, "{args:?}: {stderr}");
        assert!(!harness.path("x.pftrace").exists());
    }
}

#[test]
fn a_config_without_content() {
    assert!(refused("# nothing\n").contains("empty"));
}

#[test]
fn a_config_without_buffers() {
    let stderr = refused("data_sources { config { name: \"track_event\" } }\n");
    assert!(stderr.contains("buffer"), "{stderr}");
}

#[test]
fn a_buffer_of_an_absurd_size() {
    for size in ["0", "4294967295"] {
        let stderr = refused(&format!("buffers {{ size_kb: {size} }} {TRACK_EVENTS}\n"));
        assert!(stderr.contains("size") || stderr.contains("buffer"), "{stderr}");
    }
}

#[test]
fn a_number_that_does_not_fit() {
    let stderr = refused("buffers { size_kb: 4294967296 }\n");
    assert!(stderr.contains("my.cfg:1:"), "{stderr}");
}

#[test]
fn a_duration_of_a_month() {
    let stderr = refused(&format!("buffers {{ size_kb: 64 }} {TRACK_EVENTS}\nduration_ms: 2592000000\n"));
    assert!(stderr.contains("duration_ms"), "{stderr}");
}

#[test]
fn a_config_without_data_sources() {
    let stderr = refused("buffers { size_kb: 64 } duration_ms: 1000\n");
    assert!(stderr.starts_with("esatto: cannot use the config: it has no data_sources; add "), "{stderr}");
}

#[test]
fn a_mode_of_triggers_without_a_trigger() {
    let triggers = "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 }";
    let stderr = refused(&format!("buffers {{ size_kb: 64 }} {TRACK_EVENTS} {triggers}\n"));
    assert!(stderr.contains("its trigger_config has a mode, but no triggers; add "), "{stderr}");
}

#[test]
fn triggers_without_a_mode() {
    let triggers = "trigger_config { triggers { name: \"go\" stop_delay_ms: 1000 } trigger_timeout_ms: 1500 }";
    let stderr = refused(&format!("buffers {{ size_kb: 64 }} {TRACK_EVENTS} {triggers}\n"));
    let reason = "its trigger_config has triggers, but no trigger_mode: no trigger could end the recording; add ";
    assert!(stderr.contains(reason), "{stderr}");
}

#[test]
fn a_config_that_only_sends_triggers() {
    let stderr = refused("activate_triggers: \"slow_frame\"\n");
    assert!(stderr.contains("it has only activate_triggers, and `record` sends no triggers"), "{stderr}");
    assert!(stderr.contains("Tracing::activate_triggers"), "{stderr}");
}

#[test]
fn a_service_that_is_not_there_is_named_once() {
    let harness = Harness::new();
    let output = harness.command(esatto_bin()).args(["record", "-t", "1s"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let socket = harness.consumer_socket().display().to_string();
    assert!(said.contains("cannot reach a tracing service at ") && said.matches(&socket).count() == 1, "{said}");
}

#[test]
fn a_flush_period_without_effect() {
    let harness = Harness::new();
    let config = format!("buffers {{ size_kb: 64 }} {TRACK_EVENTS} write_into_file: true");
    for (more, is_told) in [
        ("flush_period_ms: 100", true),
        ("flush_period_ms: 100 write_flush_mode: WRITE_FLUSH_DISABLED", false),
        // As in Perfetto's guides: the service flushes more often.
        ("file_write_period_ms: 2500 flush_period_ms: 30000", false),
    ] {
        harness.write("my.cfg", format!("{config} {more}"));
        let mut command = harness.command(esatto_bin());
        let output = command.args(["record", "-c", "my.cfg", "-o", "trace", "--", "true"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("flush_period_ms has no effect: "), is_told, "{said}");
    }
}

#[test]
fn a_config_that_is_not_there() {
    let harness = Harness::new();
    let stderr = failure(&harness, &["record", "-o", "trace", "-c", "no/such.cfg", "--", "true"]);
    assert!(stderr.contains("no/such.cfg"), "{stderr}");
}

#[test]
fn a_command_that_is_not_there() {
    let harness = Harness::new();
    let stderr = failure(&harness, &["record", "-o", "trace", "--", "/no/such/program"]);
    assert!(stderr.contains("/no/such/program"), "{stderr}");
}

#[test]
fn a_trace_that_cannot_be_written() {
    let harness = Harness::new();
    let stderr = failure(&harness, &["record", "-o", "no/such/folder/trace", "--", "true"]);
    assert!(stderr.contains("no/such/folder/trace"), "{stderr}");
}

#[test]
fn no_service_to_record_from() {
    let harness = Harness::new();
    let stderr = failure(&harness, &["record", "-o", "trace"]);
    assert!(stderr.contains(harness.consumer_socket().to_str().expect("a path")), "{stderr}");
}

#[test]
fn a_config_that_the_running_service_refuses() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", format!("buffers {{ size_kb: 0 }} {TRACK_EVENTS}\n"));
    let stderr = failure(&harness, &["record", "-o", "trace", "-c", "my.cfg"]);
    assert!(stderr.contains("size") || stderr.contains("buffer"), "{stderr}");
    assert_eq!(harness.state().sessions, 0);
}

#[test]
fn an_unknown_option() {
    let harness = Harness::new();
    assert!(failure(&harness, &["record", "--bogus"]).contains("--bogus"));
    assert!(failure(&harness, &["record", "-o", "x", "-t", "soon", "--", "true"]).contains("soon"));
}

#[test]
fn sockets_that_cannot_be_made() {
    let harness = Harness::new();
    let long = format!("/tmp/{}", "x".repeat(200));
    for socket in ["/no/such/folder/p.sock", "", &long] {
        let mut command = harness.command(esatto_bin());
        let output = command.env("PERFETTO_PRODUCER_SOCK_NAME", socket).arg("traced").output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !stderr.contains("panicked"), "'{socket}': {stderr}");
    }
}

#[test]
fn a_service_that_hangs_is_told_from_a_missing_one() {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    service.signal(Signal::STOP);
    let output = harness.command(esatto_bin()).arg("list").output().expect("it runs");
    service.signal(Signal::CONT);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains("does not answer within 5 s"), "{said}");
    assert!(!said.contains("start one with"), "{said}");
}

#[test]
fn resources_that_the_service_does_not_give_have_a_remedy() {
    let source = "data_sources { config { name: 'track_event' } }";
    let big = "buffers { size_kb: 4000000 }".repeat(128);
    let stderr = refused(&format!("{big} {source}"));
    assert!(stderr.contains("the buffers have ") && stderr.contains("--ring SIZE"), "{stderr}");
    // Nobody can create files there.
    let file = "write_into_file: true output_path: '/sys/kernel/esatto.pftrace'";
    let harness = Harness::new();
    harness.write("my.cfg", format!("buffers {{ size_kb: 64 }} {source} {file}"));
    let stderr = failure(&harness, &["record", "-c", "my.cfg", "--", "true"]);
    assert!(stderr.contains("Permission denied") && stderr.contains("/var/lib/perfetto only"), "{stderr}");
}

#[test]
fn a_service_that_is_missing_is_told_alone() {
    let harness = Harness::new();
    let stderr = failure(&harness, &["record", "--preset", "default", "-o", "trace"]);
    assert!(stderr.starts_with("esatto: cannot reach a tracing service at "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_start_that_never_comes() {
    let config = format!("deferred_start: true buffers {{ size_kb: 64 }} {TRACK_EVENTS}");
    let stderr = refused(&config);
    assert!(stderr.contains("with `deferred_start`, a session waits until its program starts it"), "{stderr}");
}
