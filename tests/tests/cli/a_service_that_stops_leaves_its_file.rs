//! The service ends during a recording into its file: `record` looks at the file, and says whether
//! it is complete. If `record` writes the file itself, it says how much of the trace is there.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Recording, Signal, esatto_bin, wait_until};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 1000 };
const INTO_FILE: &str = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } }
write_into_file: true file_write_period_ms: 100 flush_period_ms: 100\n";

/// Ends the service while it writes.
fn end_the_service(harness: &Harness, options: &str, signal: Signal) -> Recording {
    let mut service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    let mut recording = harness.record(Implementation::Ours, "trace", &[INTO_FILE, options].concat());
    wait_until("events are in the file", || (events(harness) > 100).then_some(()));
    service.signal(signal);
    service.wait();
    recording.program.wait();
    recording
}

fn summary(harness: &Harness) -> Option<esatto_trace::Summary> {
    Some(esatto_trace::Summary::read(std::fs::File::open(harness.path("trace")).ok()?))
}

fn events(harness: &Harness) -> u64 {
    let summary = summary(harness);
    summary.and_then(|summary| Some(summary.packets_by_type.get("track_event")?.packets)).unwrap_or(0)
}

fn status(program: &mut Program) -> Option<i32> {
    program.wait().code()
}

#[test]
fn complete_if_it_ends_in_order() {
    // Without its own events, the file does not tell that it is complete, but the service does.
    for options in ["", "duration_ms: 60000", "builtin_data_sources { disable_service_events: true }"] {
        let harness = Harness::new();
        let mut recording = end_the_service(&harness, options, Signal::TERM);
        let log = recording.program.log();
        assert_eq!(status(&mut recording.program), Some(0), "{log}");
        assert!(log.contains("The trace is complete up to then.") && log.contains("Wrote "), "{log}");
        assert!(!log.contains("esatto: "), "{log}");
        let summary = summary(&harness).expect("a trace");
        assert!(!summary.lacks_end() && summary.errors.is_empty(), "{summary}");
    }
}

#[test]
fn without_an_end_if_it_is_killed() {
    // `touch` and `mktemp` make the file before the recording.
    for is_made_before in [false, true] {
        let harness = Harness::new();
        if is_made_before {
            harness.write("trace", "");
        }
        let mut recording = end_the_service(&harness, "", Signal::KILL);
        let log = recording.program.log();
        assert_eq!(status(&mut recording.program), Some(1), "{log}");
        let path = harness.path("trace");
        let bytes = std::fs::metadata(&path).expect("a trace").len();
        let line = format!(
            "esatto: lost the connection to the tracing service: it has ended; {} has the first {bytes} bytes, the end \
             is missing\n",
            path.display()
        );
        assert!(log.ends_with(&line) && !log.contains("Wrote "), "{log}");
        assert!(summary(&harness).expect("a trace").lacks_end());
        assert!(events(&harness) > 100, "{log}");
    }
}

#[test]
fn the_first_bytes_if_it_is_killed_while_record_reads() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    let mut record = harness.start("record", harness.command(esatto_bin()).args(["record", "-o", "trace"]));
    wait_until("events are in the file", || (events(&harness) > 100).then_some(()));
    service.signal(Signal::KILL);
    service.wait();
    assert_eq!(status(&mut record), Some(1), "{}", record.log());
    let bytes = std::fs::read(harness.path("trace")).expect("a trace").len();
    let line = format!("it has ended or was restarted; trace has the first {bytes} bytes, the end is missing\n");
    assert!(record.log().ends_with(&line), "{}", record.log());
}

#[test]
fn nothing_if_it_is_killed_before_record_reads() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let config = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } }";
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    harness.wait_for_sessions(1);
    service.signal(Signal::KILL);
    service.wait();
    assert_eq!(status(&mut recording.program), Some(1));
    let log = recording.program.log();
    assert!(log.ends_with("it has ended or was restarted; nothing was written\n"), "{log}");
    assert!(!harness.path("trace").exists());
}
