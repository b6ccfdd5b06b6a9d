//! `record -o FIFO`: the recording begins at once, and its trace waits until a program reads the
//! named pipe.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin};
use esatto_trace::Summary;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SHORT: Workload = Workload { threads: 1, rounds: 2000, pause_us: 200 };
const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 100 };
const WAITING: &str = "Waiting for a reader of fifo.\n";
const NO_READER: &str = "esatto: cannot write fifo: no program has opened this named pipe for reading; start ";
const AT_END: &str = "buffers { size_kb: 65536 } data_sources { config { name: \"track_event\" } }\n";

fn with_pipe() -> (Harness, PathBuf) {
    let harness = Harness::new();
    let fifo = harness.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
    (harness, fifo)
}

/// Records an application into the pipe.
fn record(harness: &Harness, options: &[&str], workload: Workload) -> Program {
    let application = harness.application_command(Implementation::Ours, workload);
    let mut command = harness.command(esatto_bin());
    command.arg("record").args(options).args(["-o", "fifo"]);
    harness.start("record", command.arg(application.get_program()).args(application.get_args()))
}

fn assert_whole(trace: &[u8]) {
    let summary = Summary::read(trace);
    assert!(summary.errors.is_empty() && summary.losses().is_empty(), "{summary}");
    // Three slices and an instant in each round, and an instant at the end.
    assert_eq!(summary.slices.count, 4 * SHORT.rounds + 1, "{summary}");
}

#[test]
fn also_if_the_command_has_ended() {
    for options in [&[][..], &["-c", "at_end.cfg"]] {
        let (harness, fifo) = with_pipe();
        harness.write("at_end.cfg", AT_END);
        let mut recording = record(&harness, options, SHORT);
        recording.wait_for_log("The command has ended. Its trace waits for the reader");
        assert_whole(&std::fs::read(fifo).expect("it opens"));
        recording.wait_ok();
        assert_eq!(recording.log().matches(WAITING).count(), 1, "{}", recording.log());
    }
}

#[test]
fn a_slow_reader_gets_all() {
    let (harness, fifo) = with_pipe();
    let mut recording = record(&harness, &[], SHORT);
    let (mut fifo, mut trace, mut bytes) = (File::open(fifo).expect("it opens"), Vec::new(), [0; 1000]);
    loop {
        let number = fifo.read(&mut bytes).expect("it reads");
        trace.extend_from_slice(&bytes[..number]);
        if number == 0 {
            break;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    assert_whole(&trace);
    recording.wait_ok();
}

#[test]
fn without_a_reader_the_end_says_so() {
    for (options, signal) in
        [(&["-t", "300ms"][..], None), (&["-t", "300ms", "-c", "at_end.cfg"], None), (&[], Some(Signal::INT))]
    {
        let (harness, _fifo) = with_pipe();
        harness.write("at_end.cfg", AT_END);
        let mut recording = record(&harness, options, ENDLESS);
        recording.wait_for_log(WAITING);
        if let Some(signal) = signal {
            recording.signal(signal);
        }
        assert_eq!(recording.wait().code(), Some(1), "{}", recording.log());
        let log = recording.log();
        assert!(log.contains(NO_READER) && !log.contains("Wrote"), "{log}");
    }
}

#[test]
fn a_service_that_writes_gets_the_pipe_with_its_reader() {
    let (harness, fifo) = with_pipe();
    harness.write("into_file.cfg", [AT_END, "write_into_file: true"].concat());
    let options = ["-c", "into_file.cfg"];
    let mut recording = record(&harness, &options, SHORT);
    recording.wait_for_log(WAITING);
    assert_whole(&std::fs::read(fifo).expect("it opens"));
    recording.wait_ok();
    let mut recording = record(&harness, &[&options[..], &["-t", "300ms"]].concat(), ENDLESS);
    assert_eq!(recording.wait().code(), Some(1), "{}", recording.log());
    assert!(recording.log().contains(NO_READER), "{}", recording.log());
}

#[test]
fn a_reader_that_leaves_is_told() {
    let (harness, fifo) = with_pipe();
    let mut recording = record(&harness, &[], ENDLESS);
    File::open(fifo).and_then(|mut fifo| fifo.read_exact(&mut [0; 100])).expect("it reads");
    recording.wait_for_log("esatto: cannot write all of fifo: its reader has closed it; the first ");
    recording.wait_for_log("Nothing more is recorded. The command goes on.");
    recording.signal(Signal::INT);
    assert_eq!(recording.wait().code(), Some(1), "{}", recording.log());
}
