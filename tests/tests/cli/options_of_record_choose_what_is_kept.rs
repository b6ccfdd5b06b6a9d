//! `record --category`, `--ring`, `--long`, `--trigger`, `--at`: recordings without a config.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin, wait_until};
use std::path::Path;
use std::process::Output;

const SHORT: Workload = Workload { threads: 1, rounds: 50, pause_us: 100 };
const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 500 };

/// Runs `esatto record OPTIONS -o trace application`.
fn record_application(harness: &Harness, options: &[&str]) -> Output {
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = harness.command(esatto_bin());
    // It does not wait until a certain category is recorded.
    command.arg("record").args(options).arg(application.get_program()).args(application.get_args()).arg("0");
    command.output().expect("it runs")
}

/// Starts `esatto record OPTIONS` with the service of the harness.
fn record(harness: &Harness, options: &[&str]) -> Program {
    harness.start("record", harness.command(esatto_bin()).arg("record").args(options))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn has(path: &Path, name: &str) -> bool {
    let bytes = std::fs::read(path).expect("a trace");
    bytes.windows(name.len()).any(|part| part == name.as_bytes())
}

fn summary(path: &Path) -> esatto_trace::Summary {
    esatto_trace::Summary::read(std::fs::File::open(path).expect("a trace"))
}

fn events(path: &Path) -> u64 {
    summary(path).packets_by_type.get("track_event").map_or(0, |packets| packets.packets)
}

/// A service, and a program that emits events for longer than any recording here.
fn programs(harness: &Harness) -> [Program; 2] {
    let service = harness.service(Implementation::Ours);
    let program = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    [service, program]
}

/// The application has the categories `rendering`, and `debug` with the tag `slow`.
#[test]
fn only_the_wanted_categories() {
    let harness = Harness::new();
    let path = harness.path("trace");
    let cases = [
        ("rendering", true, false),
        ("debug", false, true),
        ("tag:slow", true, true),
        ("de*,rend*", true, false),
        ("de*,rend*,tag:slow", true, true),
    ];
    for (category, has_frames, has_details) in cases {
        let output = record_application(&harness, &["-o", "trace", "--category", category]);
        assert_eq!(output.status.code(), Some(0), "{category}: {}", said(&output));
        let found = (has(&path, "frame"), has(&path, "details"));
        assert_eq!(found, (has_frames, has_details), "{category}");
    }
    let output = record_application(&harness, &["-o", "trace", "--category=-rendering"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn a_mistyped_category_is_told_with_the_one_that_was_meant() {
    let harness = Harness::new();
    let output = record_application(&harness, &["-o", "trace", "--category", "renderin"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("no category matches \"renderin\" (did you mean \"rendering\"?)"),
        "{}",
        said(&output)
    );
    let output = record_application(&harness, &["-o", "trace", "--category", "rendering,tag:slwo"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let line = "no category has the tag \"slwo\" (did you mean \"slow\"?). Known tags are: slow, ui.";
    assert!(said(&output).contains(line), "{}", said(&output));
}

#[test]
fn a_ring_keeps_the_newest_events() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut record = record(&harness, &["--ring", "128K", "-o", "trace"]);
    wait_until("the ring is overwritten", || {
        let output = harness.command(esatto_bin()).args(["top", "--once", "--json", "-i", "50ms"]).output();
        String::from_utf8_lossy(&output.expect("it runs").stdout).contains("chunks_overwritten").then_some(())
    });
    assert!(!harness.path("trace").exists(), "it is written at the end");
    record.signal(Signal::INT);
    record.wait_ok();
    let bytes = std::fs::metadata(harness.path("trace")).expect("a trace").len();
    assert!(events(&harness.path("trace")) > 100 && bytes < 512 << 10, "{bytes}");
    assert!(!record.log().contains("were lost"), "{}", record.log());
}

#[test]
fn a_long_recording_grows_and_ends_at_its_size() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let path = harness.path("long.pftrace");
    let mut first = record(&harness, &["--long", "long.pftrace"]);
    wait_until("the file grows", || std::fs::metadata(&path).ok().filter(|meta| meta.len() > 5000).map(drop));
    // The service has written it, so it is there whatever happens to `record`.
    first.kill();
    assert!(events(&path) > 10);
    let mut limited = record(&harness, &["--long", "long.pftrace", "--max-size", "64K"]);
    limited.wait_ok();
    assert!(limited.log().contains("max_file_size_bytes (65536)"), "{}", limited.log());
    assert!(std::fs::metadata(&path).expect("a trace").len() <= 64 << 10);
}

fn trigger(harness: &Harness, name: &str) {
    let output = harness.command(esatto_bin()).args(["trigger", name]).output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_first_of_several_triggers_ends_the_recording() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut record = record(&harness, &["--trigger", "slow", "--trigger", "failed", "-o", "trace"]);
    record.wait_for_log("Waiting for the trigger \"slow\" or \"failed\"; `esatto trigger NAME` activates it.");
    trigger(&harness, "other");
    trigger(&harness, "failed");
    record.wait_ok();
    assert!(events(&harness.path("trace")) > 10);
}

#[test]
fn without_the_trigger_nothing_is_written() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut timed = record(&harness, &["--trigger", "slow", "-t", "300ms", "-o", "trace"]);
    assert_eq!(timed.wait().code(), Some(4), "{}", timed.log());
    assert!(timed.log().contains("Nothing was written: the trigger \"slow\" did not come."), "{}", timed.log());
    assert!(!harness.path("trace").exists());
}

#[test]
fn a_trigger_begins_a_recording_of_some_time() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let args = ["--trigger", "go", "--on-trigger", "start", "-t", "500ms", "-o", "trace"];
    let mut record = record(&harness, &args);
    record.wait_for_log("Waiting for the trigger \"go\"");
    trigger(&harness, "go");
    record.wait_ok();
    assert!(events(&harness.path("trace")) > 10);
}

#[test]
fn each_trigger_saves_a_snapshot() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut record = record(&harness, &["--trigger", "slow", "--on-trigger", "snapshot", "-o", "trace"]);
    record.wait_for_log("Waiting for the trigger");
    for number in 0..2 {
        trigger(&harness, "slow");
        let name = format!("trace.{number}");
        record.wait_for_log(&format!("{name}: trigger \"slow\""));
        assert!(events(&harness.path(&name)) > 10, "{number}");
    }
    record.signal(Signal::INT);
    record.wait_ok();
    assert!(!harness.path("trace").exists());
}

/// A command and its children are the only programs that reach its service.
#[test]
fn a_command_can_activate_its_trigger() {
    let harness = Harness::new();
    harness.write("app.sh", "\"$1\" trigger slow; \"$2\" 1 4000 500 60 & exec sleep 60");
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace", "--trigger", "slow", "sh", "app.sh"]);
    let mut record = harness.start("record", command.arg(esatto_bin()).arg(application.get_program()));
    record.wait_recorded();
    assert!(harness.path("trace").exists(), "{}", record.log());
}

/// Returns the wall clock's time of the first event of the service that says that the session runs.
fn start_ms(path: &Path) -> u64 {
    let bytes = std::fs::read(path).expect("a trace");
    // Field 1 of a trace is a packet.
    let packets = esatto_protozero::Fields::new(&bytes).filter(|field| field.id == 1).map(|field| field.as_bytes());
    let mut clocks = None;
    let mut started = None;
    for packet in packets {
        for field in esatto_protozero::Fields::new(packet) {
            match field.id {
                // clock_snapshot
                6 if clocks.is_none() => clocks = Some(clock_values(field.as_bytes())),
                // service_event with tracing_started
                69 if esatto_protozero::Fields::new(field.as_bytes()).any(|field| field.id == 2) => {
                    let time = esatto_protozero::Fields::new(packet).find(|field| field.id == 8);
                    started = started.or_else(|| time.map(|field| field.as_u64()));
                }
                _ => {}
            }
        }
    }
    let (real_ns, boot_ns) = clocks.expect("a clock snapshot");
    let started_ns = started.expect("the begin of the session");
    (real_ns + started_ns - boot_ns) / 1_000_000
}

/// The values of CLOCK_REALTIME and CLOCK_BOOTTIME.
fn clock_values(snapshot: &[u8]) -> (u64, u64) {
    let number = |clock: &[u8], id| {
        esatto_protozero::Fields::new(clock).find(|field| field.id == id).map_or(0, |field| field.as_u64())
    };
    let clocks: Vec<(u64, u64)> = esatto_protozero::Fields::new(snapshot)
        .filter(|field| field.id == 1)
        .map(|field| (number(field.as_bytes(), 1), number(field.as_bytes(), 2)))
        .collect();
    let of = |id| clocks.iter().find(|(clock, _)| *clock == id).expect("a clock").1;
    (of(1), of(6))
}

/// No test asserts a time, but a recording must not begin before the wanted one.
#[test]
fn a_recording_begins_at_a_multiple_of_the_clock() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let mut record = record(&harness, &["--at", "/3s", "-t", "300ms", "-o", "trace"]);
    record.wait_ok();
    let next_ms = (u64::try_from(before.as_millis()).expect("a time") / 3000 + 1) * 3000;
    let started_ms = start_ms(&harness.path("trace"));
    assert!(started_ms >= next_ms, "{started_ms} is before {next_ms}");
    assert!(record.log().contains("The recording starts at 2"), "{}", record.log());
}

#[test]
fn a_recording_that_is_stopped_before_its_start_writes_nothing() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let old = [0x0a, 4, 0x40, 7, 0x50, 1];
    for options in [&["-o", "trace"][..], &["--long", "trace"]] {
        harness.write("trace", old);
        let mut record = record(&harness, &[options, &["--at", "/24h"]].concat());
        record.wait_for_log("The recording starts at ");
        record.signal(Signal::INT);
        assert_eq!(record.wait().code(), Some(3), "{}", record.log());
        let line = "Nothing was recorded: the recording was stopped before its start.\n";
        assert!(record.log().ends_with(line), "{}", record.log());
        assert_eq!(std::fs::read(harness.path("trace")).expect("it is there"), old);
        assert_eq!(std::fs::read_dir(harness.folder()).expect("a folder").flatten().filter(is_hidden).count(), 0);
    }
    let mut late = record(&harness, &["--at", "@1000000000", "-o", "trace"]);
    assert_eq!(late.wait().code(), Some(1));
    assert!(late.log().contains("cannot start at 2001-09-09T01:46:40Z: it was"), "{}", late.log());
}

fn is_hidden(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

#[test]
fn a_service_that_dies_before_the_start_is_told() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut record = record(&harness, &["--at", "/24h", "-o", "trace"]);
    record.wait_for_log("The recording starts at ");
    service.kill();
    assert_eq!(record.wait().code(), Some(1), "{}", record.log());
    assert!(record.log().contains("nothing was written"), "{}", record.log());
    assert!(!harness.path("trace").exists());
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let harness = Harness::new();
    harness.write("my.cfg", "data_sources { config { name: \"track_event\" } }");
    let cases: [(&[&str], &str); 6] = [
        (&["-c", "my.cfg", "--category", "net"], "--category is not possible with -c"),
        (&["-c", "my.cfg", "--ring", "1M"], "size_kb in the config"),
        (&["--long", "x", "--ring", "1M"], "leave out one of both"),
        (&["--max-size", "1M"], "--long <FILE>"),
        (&["--category", "a*b"], "only at the end of a pattern"),
        (&["--at", "tomorrow"], "expected /10s"),
    ];
    for (args, why) in cases {
        let mut program = record(&harness, args);
        assert_eq!(program.wait().code(), Some(2), "{args:?}: {}", program.log());
        assert!(program.log().contains(why), "{args:?}: {}", program.log());
    }
    let mut program = record(&harness, &["--at", "/1s", "--trigger", "x", "--on-trigger", "start", "sleep", "1"]);
    assert_eq!(program.wait().code(), Some(1), "{}", program.log());
    assert!(program.log().contains("a trigger starts the recording"), "{}", program.log());
}
