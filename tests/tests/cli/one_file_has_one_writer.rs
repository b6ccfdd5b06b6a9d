//! Two recordings do not write into one file, and a file that another program has emptied is no
//! success.

use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin, wait_until};
use std::fs;
use std::path::PathBuf;

const BY_SERVICE: &str = "write_into_file: true file_write_period_ms: 100";

/// A service, and a program that emits events for longer than any recording here.
fn programs(harness: &Harness) -> [Program; 2] {
    let service = harness.service(Implementation::Ours);
    let program = harness.application(Implementation::Ours, Workload { threads: 1, rounds: 200_000, pause_us: 200 });
    harness.wait_for_data_source("track_event");
    [service, program]
}

/// Starts a recording whose file the service writes, as the config says; without a config, the
/// command writes it.
fn record(harness: &Harness, config: &str, name: &str) -> Program {
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", name]);
    if !config.is_empty() {
        harness.write("my.cfg", format!("{CONFIG}{config}"));
        command.args(["-c", "my.cfg"]);
    }
    harness.start("record", &mut command)
}

/// Waits until a recording has written some of its file.
fn has_bytes(harness: &Harness, name: &str) -> PathBuf {
    let path = harness.path(name);
    wait_until("the file grows", || fs::metadata(&path).ok().filter(|meta| meta.len() > 5000));
    path
}

#[test]
fn a_second_recording_into_the_same_file_is_refused() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    for config in ["", BY_SERVICE] {
        let _ = fs::remove_file(harness.path("trace"));
        let mut first = record(&harness, config, "trace");
        has_bytes(&harness, "trace");
        for second_config in ["", BY_SERVICE] {
            let mut second = record(&harness, second_config, "trace");
            assert_eq!(second.wait().code(), Some(1), "{}", second.log());
            let reason =
                "cannot write trace: another recording writes it at the moment; choose another file with -o FILE";
            assert!(second.log().contains(reason), "{}", second.log());
        }
        first.signal(Signal::INT);
        first.wait_ok();
        let trace = fs::read(harness.path("trace")).expect("a file");
        let packets: Result<Vec<_>, _> = esatto_trace::packets(&trace).collect();
        assert!(packets.expect("a whole trace").len() > 10);
        // The file is free as soon as its recording has ended.
        let mut next = record(&harness, "duration_ms: 300", "trace");
        next.wait_ok();
    }
}

#[test]
fn a_file_that_another_program_empties_is_lost() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let other = [0x0a, 2, 8, 1].repeat(100);
    for (config, content) in [("", &[][..]), (BY_SERVICE, &[]), ("", &other), (BY_SERVICE, &other)] {
        let mut record = record(&harness, config, "trace");
        let path = has_bytes(&harness, "trace");
        // Else a packet that the command is writing might come after the other program's bytes.
        record.signal(Signal::STOP);
        fs::write(&path, content).expect("it is writable");
        record.signal(Signal::INT);
        record.signal(Signal::CONT);
        assert_eq!(record.wait().code(), Some(1), "{}", record.log());
        let log = record.log();
        let reason = "lost the trace file trace: another program has emptied it, or has written into it, during the \
                      recording; give each recording a file of its own";
        assert!(log.contains(reason) && !log.contains("Wrote") && !log.contains("No event"), "{log}");
        if config.is_empty() {
            assert_eq!(fs::read(&path).expect("a file"), content, "nothing is written over the other program's bytes");
        }
        fs::remove_file(&path).expect("it is there");
    }
}
