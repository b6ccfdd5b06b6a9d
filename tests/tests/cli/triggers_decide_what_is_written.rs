//! Configs with triggers: `record` says what is on the disk, and reports a trigger that did not
//! come with the exit status 4.

use std::time::Duration;

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Implementation, Signal, esatto_bin, wait_until};

/// Exit status if the trigger did not come.
const NO_TRIGGER: i32 = 4;

fn config(mode: &str, timeout_ms: u32) -> String {
    format!(
        "buffers {{ size_kb: 256 }} data_sources {{ config {{ name: \"source\" }} }} trigger_config {{ \
         trigger_mode: {mode} trigger_timeout_ms: {timeout_ms} triggers {{ name: \"slow_frame\" }} }}"
    )
}

#[test]
fn nothing_if_no_trigger_comes() {
    for mode in ["START_TRACING", "STOP_TRACING", "CLONE_SNAPSHOT"] {
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut recording = harness.record(Implementation::Ours, "trace", &config(mode, 300));
        let status = recording.program.wait();
        let log = recording.program.log();
        assert_eq!(status.code(), Some(NO_TRIGGER), "{mode}: {log}");
        assert!(log.contains("Nothing was written: the trigger \"slow_frame\" did not come"), "{mode}: {log}");
        assert!(!log.contains("Wrote"), "{mode}: {log}");
        assert!(!harness.path("trace").exists(), "{mode}");
    }
}

#[test]
fn an_existing_file_stays_if_no_trigger_comes() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    // A packet with a timestamp.
    let old = [0x0a, 2, 0x40, 7];
    harness.write("trace", old);
    let mut recording = harness.record(Implementation::Ours, "trace", &config("STOP_TRACING", 60_000));
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    assert_eq!(recording.program.wait().code(), Some(NO_TRIGGER), "{}", recording.program.log());
    assert_eq!(std::fs::read(harness.path("trace")).expect("it is there"), old);
}

#[test]
fn snapshots_are_written_as_they_happen() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut recording = harness.record(Implementation::Ours, "trace", &config("CLONE_SNAPSHOT", 60_000));
    harness.wait_for_sessions(1);
    let mut producer = RawProducer::connect(&harness, "trigger");
    for number in 0..2 {
        assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
        let path = harness.path(format!("trace.{number}"));
        let text = format!("bytes into {}: trigger \"slow_frame\"", path.display());
        recording.program.wait_for_log(&text);
        let bytes = wait_until("the snapshot", || std::fs::read(&path).ok());
        assert!(recording.program.log().contains(&format!("Wrote {} {text}", bytes.len())));
        let packets: Result<Vec<_>, _> = esatto_trace::packets(&bytes).collect();
        assert!(packets.expect("a trace").len() > 2);
    }
    recording.program.signal(Signal::INT);
    // The data source has no program, so the snapshots have no events.
    assert_eq!(recording.program.wait().code(), Some(3), "{}", recording.program.log());
    assert!(!harness.path("trace").exists() && !harness.path("trace.2").exists());
}

/// A snapshot that begins a minute after its trigger.
fn delayed(timeout_ms: u32, more: &str) -> String {
    let config = config("CLONE_SNAPSHOT", timeout_ms).replace("\"slow_frame\"", "\"slow_frame\" stop_delay_ms: 60000");
    format!("{config} {more}")
}

#[test]
fn a_recording_that_ends_during_the_delay_of_a_trigger_writes_the_snapshot() {
    // The second one ends by itself.
    let cases = [
        (60_000, ""),
        (3000, ""),
        (60_000, "compression { deflate { } }"),
        (60_000, "unique_session_name: \"mine\" builtin_data_sources { disable_trace_config: true }"),
    ];
    for (timeout_ms, more) in cases {
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut recording = harness.record(Implementation::Ours, "trace", &delayed(timeout_ms, more));
        harness.wait_for_sessions(1);
        let mut producer = RawProducer::connect(&harness, "trigger");
        assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
        if timeout_ms == 60_000 {
            recording.program.signal(Signal::INT);
        }
        let status = recording.program.wait();
        let log = recording.program.log();
        // The data source has no program, so the snapshot has no events.
        assert_eq!(status.code(), Some(3), "{more}: {log}");
        let path = harness.path("trace.0");
        assert!(log.contains(&format!("bytes into {}: trigger \"slow_frame\"", path.display())), "{more}: {log}");
        assert!(!log.contains("got no snapshot"), "{more}: {log}");
        let trace = std::fs::read(path).expect("a snapshot");
        let packets: Result<Vec<_>, _> = esatto_trace::packets(&trace).collect();
        assert!(!packets.expect("a trace").is_empty());
    }
}

#[test]
fn nothing_at_the_end_if_no_trigger_with_a_delay_comes() {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    let mut recording = harness.record(Implementation::Ours, "trace", &delayed(60_000, ""));
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    let status = recording.program.wait();
    let log = recording.program.log();
    assert_eq!(status.code(), Some(NO_TRIGGER), "{log}");
    assert!(log.contains("the trigger \"slow_frame\" did not come"), "{log}");
    assert!(!harness.path("trace.0").exists());
    assert!(!service.log().contains(" is a clone of "), "{}", service.log());
}

#[test]
fn triggers_beyond_the_limit_are_counted() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let config = |mode| config(mode, 60_000).replace("\"slow_frame\"", "\"slow_frame\" max_per_24_h: 1");
    let trigger = || {
        let mut producer = RawProducer::connect(&harness, "trigger");
        assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
    };
    let mut recording = harness.record(Implementation::Ours, "first", &config("CLONE_SNAPSHOT"));
    harness.wait_for_sessions(1);
    trigger();
    recording.program.wait_for_log("first.0");
    trigger();
    trigger();
    recording.program.signal(Signal::INT);
    let _ = recording.program.wait();
    let log = recording.program.log();
    assert!(log.contains("2 triggers came in vain because of max_per_24_h"), "{log}");
    service.wait_for_log("session 1: the trigger \"slow_frame\" is ignored from now on: ");
    assert!(service.log().contains("accepted it 1 times in the last 24 hours, and max_per_24_h is 1"));
    assert_eq!(service.log().matches(" is ignored from now on").count(), 1, "{}", service.log());
    // The limit is that of the name, over all sessions.
    let mut recording = harness.record(Implementation::Ours, "second", &config("STOP_TRACING"));
    harness.wait_for_sessions(1);
    trigger();
    recording.program.signal(Signal::INT);
    assert_eq!(recording.program.wait().code(), Some(NO_TRIGGER));
    let log = recording.program.log();
    assert!(log.contains("Nothing was written: 1 trigger came in vain because of max_per_24_h"), "{log}");
}

#[test]
fn a_time_on_the_command_line_is_refused_with_its_name() {
    let harness = Harness::new();
    harness.write("ring.cfg", config("STOP_TRACING", 60_000));
    let args = ["record", "-t", "2s", "-c", "ring.cfg", "-o", "trace"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(1));
    let log = record.log();
    assert!(log.contains("-t is not possible") && log.contains("trigger_timeout_ms"), "{log}");
    assert!(!log.contains("duration_ms is"), "{log}");
}

#[test]
fn snapshots_overwrite_no_file() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("trace.0", "of yesterday");
    std::os::unix::fs::symlink("victim", harness.path("trace.1")).expect("a link");
    let mut recording = harness.record(Implementation::Ours, "trace", &config("CLONE_SNAPSHOT", 60_000));
    harness.wait_for_sessions(1);
    let mut producer = RawProducer::connect(&harness, "trigger");
    assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
    recording.program.wait_for_log(&format!("bytes into {}", harness.path("trace.2").display()));
    recording.program.signal(Signal::INT);
    recording.program.wait();
    assert_eq!(std::fs::read_to_string(harness.path("trace.0")).expect("it is there"), "of yesterday");
    assert!(!harness.path("victim").exists());
}

#[test]
fn a_trigger_that_came_is_not_denied() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let folder = harness.path("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let mut recording = harness.record(Implementation::Ours, "folder/trace", &config("CLONE_SNAPSHOT", 60_000));
    harness.wait_for_sessions(1);
    std::fs::remove_dir_all(&folder).expect("ours");
    let mut producer = RawProducer::connect(&harness, "trigger");
    assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
    recording.program.wait_for_log("cannot write");
    recording.program.signal(Signal::INT);
    assert_eq!(recording.program.wait().code(), Some(1));
    let log = recording.program.log();
    assert!(log.contains("No complete snapshot could be saved.") && !log.contains("did not come"), "{log}");
}

#[test]
fn nothing_if_no_trigger_comes_and_the_service_names_the_file() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let into_file = format!("write_into_file: true output_path: \"{}\"", harness.path("trace").display());
    harness.write("my.cfg", format!("{into_file} {}", config("START_TRACING", 300)));
    let mut record = harness.start("record", harness.command(esatto_bin()).args(["record", "-c", "my.cfg"]));
    assert_eq!(record.wait().code(), Some(NO_TRIGGER), "{}", record.log());
}

#[test]
fn snapshots_are_regular_files() {
    let harness = Harness::new();
    harness.write("my.cfg", config("CLONE_SNAPSHOT", 60_000));
    for name in ["-", "/dev/null", "/dev/stderr"] {
        let mut command = harness.command(esatto_bin());
        let output = command.args(["record", "-o", name, "-c", "my.cfg", "--", "true"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("cannot write snapshots to"), "{said}");
    }
    assert!(!std::path::Path::new("/dev/null.0").exists());
}

#[test]
fn triggers_without_end_start_no_threads_without_end() {
    const HITS: usize = 500;
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut recording = harness.record(Implementation::Ours, "trace", &config("CLONE_SNAPSHOT", 60_000));
    harness.wait_for_sessions(1);
    let mut producer = RawProducer::connect(&harness, "trigger");
    let mut most = 0;
    for _ in 0..HITS {
        assert!(producer.call("ActivateTriggers", &Proto::new().bytes(1, "slow_frame")).success);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", recording.program.pid())).expect("it runs");
        most = most.max(tasks.count());
    }
    assert!(most <= 4, "{most} threads");
    recording.program.signal(Signal::INT);
    assert_eq!(recording.program.wait().code(), Some(3), "{}", recording.program.log());
    let log = recording.program.log();
    let written = log.matches("trigger \"slow_frame\"").count();
    let missed = log.lines().find_map(|line| line.strip_suffix("limits a trigger.")?.split_once(" triggers got no"));
    let missed: usize = missed.map_or(0, |(number, _)| number.parse().expect("a number"));
    assert_eq!(written + missed, HITS, "{log}");
}

#[test]
fn a_program_that_ends_at_once_still_tells_its_trigger() {
    let again = esatto_tests::again!(a_program_that_ends_at_once_still_tells_its_trigger);
    if let Some(role) = again.role() {
        let tracing = esatto::Tracing::builder().system().start().expect("starts");
        tracing.activate_triggers(&["slow_frame"], Duration::from_secs(10));
        if role == "abort" {
            std::process::abort();
        }
        drop(tracing);
        std::process::exit(0);
    }
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut recording = harness.record(Implementation::Ours, "trace", &config("CLONE_SNAPSHOT", 60_000));
    harness.wait_for_sessions(1);
    for (number, role) in ["tell", "abort"].into_iter().cycle().take(10).enumerate() {
        let mut command = again.command(&harness, role);
        if role == "abort" {
            // It must have a connection before; the end of the other one waits for its own.
            command.env("ESATTO_WAIT_MS", "60000").env("ESATTO_WAIT_FOR", "service");
        }
        let mut program = harness.start(role, &mut command);
        assert_eq!(program.wait().success(), role == "tell");
        wait_until("the snapshot", || harness.path(format!("trace.{number}")).exists().then_some(()));
    }
    recording.program.signal(Signal::INT);
    recording.program.wait();
}

#[test]
fn the_command_that_tells_a_trigger_has_help_and_wants_a_name() {
    let harness = Harness::new();
    let help = harness.command(esatto_bin()).args(["trigger", "--help"]).output().expect("it runs");
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("esatto trigger <TRIGGER>..."), "{help:?}");
    let without = harness.command(esatto_bin()).arg("trigger").output().expect("it runs");
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("<TRIGGER>..."), "{without:?}");
}

#[test]
fn a_trigger_that_no_service_takes_is_told_with_the_reason() {
    let harness = Harness::new();
    let tell = || {
        let output = harness.command(esatto_bin()).args(["trigger", "slow"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = tell();
    let beginning = "esatto: cannot activate the trigger \"slow\": ";
    assert!(told.starts_with(beginning) && told.contains("the service is expected at "), "{told}");
    let service = harness.service(Implementation::Ours);
    service.signal(Signal::STOP);
    let told = tell();
    assert!(told.starts_with(beginning) && told.contains(": it is suspended or hangs"), "{told}");
    service.signal(Signal::CONT);
}
