//! `record COMMAND` on a disk that is full, or with a file that may not grow: the recording stops
//! and says so at once. The command runs to its end.

use esatto_tests::tiny_disk::{DISK_BYTES, TinyDisk};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin, skip};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 100 };
/// The service writes the file.
const INTO_FILE: &str = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } }
write_into_file: true file_write_period_ms: 100 flush_period_ms: 100";

/// Records a command that goes on until there is a file `enough`, and then makes a file `ended`.
fn record(harness: &Harness, options: &[&str]) -> Program {
    let application = harness.application_command(Implementation::Ours, ENDLESS);
    let arguments: Vec<_> = application.get_args().map(|argument| argument.to_string_lossy()).collect();
    let application = format!("{} {}", application.get_program().to_string_lossy(), arguments.join(" "));
    let script = "while test -d . && ! test -e enough; do sleep 0.1; done; kill $!; touch ended";
    harness.write("go.sh", format!("trap 'kill $!; exit 1' TERM\n{application} &\n{script}"));
    let mut command = harness.command(esatto_bin());
    harness.start("esatto-record", command.arg("record").args(options).args(["sh", "go.sh"]))
}

fn to_its_end(harness: &Harness, options: &[&str], reason: &str) {
    let record = to_its_end_with(harness, options, reason, 1);
    assert_eq!(record.log().matches("esatto: ").count(), 1, "{}", record.log());
}

fn to_its_end_with(harness: &Harness, options: &[&str], reason: &str, status: i32) -> Program {
    harness.write("file.cfg", INTO_FILE);
    harness.write("small.cfg", format!("{INTO_FILE} max_file_size_bytes: 60000"));
    let mut record = record(harness, options);
    record.wait_for_log(reason);
    record.wait_for_log("Nothing more is recorded. The command goes on.");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(record.is_running() && !harness.path("ended").exists());
    harness.write("enough", "");
    assert_eq!(record.wait().code(), Some(status), "{}", record.log());
    assert!(harness.path("ended").exists(), "{}", record.log());
    record
}

#[test]
fn to_its_end_with_a_file_of_ours() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        to_its_end(&harness, &["-o", "disk/trace"], "cannot write all of disk/trace: No space left on device");
        let bytes = std::fs::read(disk.path().join("trace")).expect("it is there");
        assert!(bytes.len() as u64 > DISK_BYTES / 4 && esatto_trace::packets(&bytes).all(|packet| packet.is_ok()));
        Ok(())
    });
}

#[test]
fn to_its_end_with_a_file_of_the_service() {
    let reason = "the service ended the recording: the trace file cannot be written: No space left on device";
    to_its_end(&Harness::new(), &["-c", "file.cfg", "-o", "/dev/full"], reason);
}

#[test]
fn to_its_end_after_the_service_has_filled_the_disk() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let reason = "the service ended the recording: the trace file cannot be written: No space left on device";
        let record = to_its_end_with(&harness, &["-c", "file.cfg", "-o", "disk/trace"], reason, 1);
        let bytes = std::fs::metadata(disk.path().join("trace")).expect("it is there").len();
        let (log, kept) = (record.log(), format!("; disk/trace has the first {bytes} bytes, the end is missing\n"));
        assert!(log.contains(&kept) && !log.contains("Wrote"), "{log}");
        Ok(())
    });
}

#[test]
fn to_its_end_after_a_full_file() {
    let cases: [&[&str]; 2] = [&["--long", "trace", "--max-size", "64K"], &["-c", "small.cfg", "-o", "trace"]];
    for options in cases {
        let harness = Harness::new();
        let record = to_its_end_with(&harness, options, "s, because the file reached max_file_size_bytes", 0);
        // The file is complete before the command ends.
        let log = record.log();
        let (before, _) = log.split_once("The command goes on.").expect("it says so");
        assert!(before.contains("Wrote") && !log.contains("Asking the command to end"), "{log}");
        let bytes = std::fs::read(harness.path("trace")).expect("it is there");
        assert!(bytes.len() > 10_000 && esatto_trace::packets(&bytes).all(|packet| packet.is_ok()));
    }
}

#[test]
fn until_the_time_is_over_after_a_full_file() {
    let harness = Harness::new();
    let mut record = record(&harness, &["--long", "trace", "--max-size", "64K", "-t", "6s"]);
    record.wait_for_log("The command goes on.");
    assert_eq!(record.wait().code(), Some(0), "{}", record.log());
    assert!(record.log().contains("Asking the command to end"), "{}", record.log());
    assert!(!harness.path("ended").exists());
}

#[test]
fn until_the_time_is_over() {
    let harness = Harness::new();
    let mut record = record(&harness, &["-o", "/dev/full", "-t", "4s"]);
    record.wait_for_log("The command goes on.");
    assert_eq!(record.wait().code(), Some(1), "{}", record.log());
    assert!(record.log().contains("Asking the command to end"), "{}", record.log());
    assert!(!harness.path("ended").exists());
}

#[test]
fn until_the_user_stops_it() {
    let harness = Harness::new();
    let mut record = record(&harness, &["-o", "/dev/full"]);
    record.wait_for_log("The command goes on.");
    record.signal(Signal::INT);
    assert_eq!(record.wait().code(), Some(1), "{}", record.log());
    assert!(!harness.path("ended").exists());
}
